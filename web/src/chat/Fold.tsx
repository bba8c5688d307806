import type { ComponentChild } from 'preact'
import { useState } from 'preact/hooks'
import type { Entry } from './entries'

// useUnfolded is whether a part of an entry is open, also after the entry was out of
// sight, and so out of the document.
export function useUnfolded(entry: Entry, part: string): [boolean, (open: boolean) => void] {
  const [open, setOpen] = useState(entry.unfolded.has(part))
  return [open, (now) => {
    if (now) entry.unfolded.add(part)
    else entry.unfolded.delete(part)
    setOpen(now)
  }]
}

// Fold shows its content only while it is open.
export function Fold({ entry, title, children }: { entry: Entry; title: string; children: () => ComponentChild }) {
  const [open, setOpen] = useUnfolded(entry, title)
  return (
    <details class="fold" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>{title}</summary>
      {open && children()}
    </details>
  )
}
