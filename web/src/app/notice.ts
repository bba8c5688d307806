import { signal } from '@preact/signals'

export interface Notice {
  id: number
  text: string
  action?: { label: string; run: () => void }
}

const shownFor = 6000 // ms

// notices are the short messages at the edge of the page, oldest first.
export const notices = signal<Notice[]>([])

let last = 0

// tell shows a message for a while. The returned function takes it away at once.
export function tell(text: string, action?: Notice['action'], forMS = shownFor): () => void {
  const id = ++last
  notices.value = [...notices.value.slice(-4), { id, text, action }]
  const dismiss = () => { notices.value = notices.value.filter((notice) => notice.id !== id) }
  setTimeout(dismiss, forMS)
  return dismiss
}
