import { useState } from 'preact/hooks'

// Reasoning is what the model thought, folded.
export function Reasoning({ text, complete }: { text: string; complete: boolean }) {
  const [open, setOpen] = useState(false)
  if (complete && text.trim() === '') return null
  return (
    <details class="reasoning" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>{complete ? 'Reasoning' : 'Reasoning …'}</summary>
      {open && <p dir="auto">{text}</p>}
    </details>
  )
}
