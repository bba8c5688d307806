import type { ComponentChild } from 'preact'
import { useState } from 'preact/hooks'
import type { Entry } from './entries'

// useUnfolded is whether a part of an entry is open, also after the entry was out of
// sight, and so out of the document.
export function useUnfolded(entry: Entry, part: string, atFirst = false): [boolean, (open: boolean) => void] {
  const [open, setOpen] = useState(entry.unfolded.get(part) ?? atFirst)
  return [open, (now) => {
    entry.unfolded.set(part, now)
    setOpen(now)
  }]
}

// Fold shows its content only while it is open.
export function Fold({ entry, title, atFirst, children }: { entry: Entry; title: string; atFirst?: boolean; children: () => ComponentChild }) {
  const [open, setOpen] = useUnfolded(entry, title, atFirst)
  return (
    <details class="fold" open={open} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>{title}</summary>
      {open && children()}
    </details>
  )
}
