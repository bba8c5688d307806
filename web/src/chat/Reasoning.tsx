import type { Message } from 'loadline'
import { useState } from 'preact/hooks'

// Reasoning is what the model thought, folded.
export function Reasoning({ message }: { message: Message }) {
  const [open, setOpen] = useState(false)
  const { item } = message
  const stored = item?.kind === 'reasoning' ? item.reasoning : undefined
  const text = stored?.text ?? message.text
  if (stored && text.trim() === '') return null
  return (
    <details class="reasoning" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>{stored ? 'Reasoning' : 'Reasoning …'}</summary>
      {open && <p dir="auto">{text}</p>}
    </details>
  )
}
