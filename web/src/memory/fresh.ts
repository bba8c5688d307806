import { signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'

const lookEvery = 1000 // ms
const lookTimes = 30

// round changes when there may be new records and documents.
export const round = signal(0)

// useWatch looks again and again after start was called, until what it looks at has
// changed; then, as documents follow records, a few times more.
export function useWatch(look: () => void, seen: string): { start: () => void; watching: boolean } {
  const [left, setLeft] = useState(0)
  const [before, setBefore] = useState('')
  const changed = left > 0 && seen !== before
  useEffect(() => {
    if (left === 0) return
    const timer = setTimeout(() => {
      if (changed) round.value++
      else look()
      setLeft(changed ? Math.min(left - 1, 4) : left - 1)
    }, lookEvery)
    return () => clearTimeout(timer)
  }, [left, changed])
  const start = () => {
    setBefore(seen)
    setLeft(lookTimes)
  }
  return { start, watching: left > 0 && !changed }
}
