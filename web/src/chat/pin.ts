import type { Virtualizer } from '@tanstack/virtual-core'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'

const near = 48 // pixels from the end that still count as the end
const scrollKeys = new Set(['ArrowUp', 'PageUp', 'Home', 'ArrowDown', 'PageDown', 'End', ' '])

// usePin keeps a list at its end while it grows, until the reader goes elsewhere.
export function usePin(scroller: { current: HTMLElement | null }, list: Virtualizer<HTMLDivElement, HTMLElement>) {
  const [pinned, setPinned] = useState(true)
  const now = useRef(true)
  const set = (next: boolean) => {
    now.current = next
    setPinned(next)
  }
  const toEnd = () => {
    set(true)
    if (scroller.current) scroller.current.scrollTop = scroller.current.scrollHeight
  }
  // Measuring moves the list too, so only what the reader does takes the pin away.
  useEffect(() => {
    const box = scroller.current!
    let moving = false
    const move = () => { moving = true }
    const press = (e: KeyboardEvent) => { if (scrollKeys.has(e.key)) moving = true }
    const scrolled = () => {
      const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < near
      if (atEnd) set(true)
      else if (moving) set(false)
    }
    const settle = () => { moving = false }
    const open = (e: MouseEvent) => { if ((e.target as Element).closest('summary, button')) set(false) } // to read what it opens
    box.addEventListener('wheel', move, { passive: true })
    box.addEventListener('touchmove', move, { passive: true })
    box.addEventListener('pointerdown', move)
    box.addEventListener('keydown', press)
    box.addEventListener('click', open)
    box.addEventListener('scroll', scrolled, { passive: true })
    box.addEventListener('scrollend', settle)
    box.addEventListener('to-end', toEnd)
    const grown = new ResizeObserver(() => { if (now.current) box.scrollTop = box.scrollHeight })
    grown.observe(box)
    grown.observe(box.firstElementChild!)
    return () => grown.disconnect()
  }, [])
  const size = list.getTotalSize()
  useLayoutEffect(() => { if (now.current) toEnd() }, [size])
  return { pinned, toEnd }
}
