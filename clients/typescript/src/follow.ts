import type { Event } from './types.js'
import { Problem } from './problem.js'
import { Frames } from './sse.js'

// State of a stream: live; reconnecting, a try is made or comes soon; offline, the
// browser says that there is no network.
export type State = 'live' | 'reconnecting' | 'offline'

// Followed is an event and the id from which the stream goes on after it.
export interface Followed {
  id: string
  event: Event
}

export interface FollowOptions {
  after?: string // an id, 0 for the beginning, now; absent is 0
  signal?: AbortSignal
  onState?: (state: State) => void
}

const firstWait = 250 // ms
const longestWait = 15_000 // ms
const deadAfter = 40_000 // ms without a byte; a comment comes every 15 s

// follow yields the events of a session without end, resuming by id: no gap, no
// double. It ends when signal aborts, and throws the Problem of an answer that no
// second try can better, such as 404 when the session was deleted.
export async function* follow(open: (cursor: string, signal: AbortSignal) => Promise<Response>, options: FollowOptions): AsyncGenerator<Followed> {
  let id = options.after ?? '0'
  for (let failures = 0; !options.signal?.aborted; failures++) {
    try {
      for await (const followed of connection(open, id, options)) {
        failures = 0
        id = followed.id
        yield followed
      }
    } catch (err) {
      if (options.signal?.aborted) return
      if (err instanceof Problem && err.status >= 400 && err.status < 500 && err.status !== 408 && err.status !== 429) throw err
    }
    if (options.signal?.aborted) return
    await pause(failures, options)
  }
}

// connection yields what one connection brings. It throws when that breaks.
async function* connection(open: (cursor: string, signal: AbortSignal) => Promise<Response>, id: string, options: FollowOptions): AsyncGenerator<Followed> {
  const stop = new AbortController()
  const abort = () => stop.abort()
  options.signal?.addEventListener('abort', abort)
  let watch = setTimeout(abort, deadAfter)
  try {
    const answer = await open(id, stop.signal)
    options.onState?.('live')
    const reader = answer.body!.getReader()
    const frames = new Frames()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      clearTimeout(watch)
      watch = setTimeout(abort, deadAfter)
      for (const frame of frames.push(value)) {
        const event = JSON.parse(frame.data) as Event
        if (frame.id) id = frame.id
        else if (event.type === 'stream.reset') id = `${event.from}.0`
        yield { id, event }
      }
    }
  } finally {
    clearTimeout(watch)
    options.signal?.removeEventListener('abort', abort)
    stop.abort()
  }
}

// pause waits before the next try, longer after each failure, and not at all once
// the browser says that it is online again.
async function pause(failures: number, { signal, onState }: FollowOptions) {
  const offline = () => globalThis.navigator?.onLine === false
  onState?.(offline() ? 'offline' : 'reconnecting')
  const wake = new AbortController()
  const online = () => wake.abort()
  globalThis.addEventListener?.('online', online)
  signal?.addEventListener('abort', online)
  await sleep(Math.min(firstWait * 2 ** failures, longestWait) * (0.5 + Math.random() / 2), wake.signal)
  globalThis.removeEventListener?.('online', online)
  signal?.removeEventListener('abort', online)
  onState?.(offline() ? 'offline' : 'reconnecting')
}

// sleep waits for some ms, or until signal aborts.
export async function sleep(ms: number, signal?: AbortSignal) {
  if (signal?.aborted) return
  await new Promise<void>((resolve) => {
    const wake = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const timer = setTimeout(wake, ms)
    signal?.addEventListener('abort', wake)
  })
}
