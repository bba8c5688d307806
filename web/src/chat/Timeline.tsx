import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from '@tanstack/virtual-core'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { EntryView } from './EntryView'
import type { Entry } from './entries'
import type { Open } from './open'
import { usePin } from './pin'

const usualHeight = 110 // pixels of an entry that has not been seen
const overscan = 6 // entries beyond what is seen

// Timeline lists the entries of a conversation. Only those near what is seen are in
// the document, so ten thousand are as fast as ten.
export function Timeline({ here }: { here: Open }) {
  const scroller = useRef<HTMLDivElement>(null)
  const entries = here.entries.value
  const list = useVirtualizer(scroller, entries)
  const pin = usePin(scroller, list)
  const shown = list.getVirtualItems()
  const before = shown[0]?.start ?? 0
  const after = list.getTotalSize() - (shown.at(-1)?.end ?? 0)
  return (
    <div class="timeline-box">
      <div class="timeline" ref={scroller} tabIndex={0} role="region" aria-label="Messages">
        <div class="entries">
          <div style={{ height: `${before}px` }} />
          {shown.map(({ index, key }) => (
            <div key={key} data-index={index} ref={list.measureElement}><EntryView entry={entries[index]!} here={here} /></div>
          ))}
          <div style={{ height: `${Math.max(after, 0)}px` }} />
          <Waiting here={here} />
        </div>
      </div>
      {!pin.pinned && <button type="button" class="to-end" onClick={pin.toEnd}>To the end ↓</button>}
    </div>
  )
}

function useVirtualizer(scroller: { current: HTMLDivElement | null }, entries: Entry[]) {
  const [, redraw] = useState(0)
  const list = useRef<Virtualizer<HTMLDivElement, HTMLElement> | undefined>(undefined)
  const options = {
    count: entries.length,
    getScrollElement: () => scroller.current,
    getItemKey: (index: number) => entries[index]?.key ?? index,
    estimateSize: () => usualHeight,
    overscan,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => redraw((n) => n + 1),
  }
  list.current ??= new Virtualizer(options)
  list.current.setOptions(options)
  useLayoutEffect(() => list.current!._didMount(), [])
  useLayoutEffect(() => list.current!._willUpdate())
  return list.current
}

// Waiting is seen while a turn runs and nothing is being written.
function Waiting({ here }: { here: Open }) {
  const running = here.turns.value.find((turn) => turn.state === 'running')
  const [, tick] = useState(0)
  useEffect(() => {
    if (!running) return
    const timer = setInterval(() => tick((n) => n + 1), 1000)
    return () => clearInterval(timer)
  }, [running?.id])
  if (!running) return null
  return <p class="waiting"><span class="pulse" aria-hidden="true" />{here.waiting.value || 'Working'}</p>
}
