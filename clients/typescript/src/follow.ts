import type { Event } from './types.js'
import { malformed, Problem } from './problem.js'
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
        failures = 0 // a comment, which brings nothing, says too that the line stands
        for (const each of followed) {
          id = each.id
          yield each
        }
      }
    } catch (err) {
      if (options.signal?.aborted) return
      if (err instanceof Problem && isFinal(err)) throw err
    }
    if (options.signal?.aborted) return
    await pause(failures, options)
  }
}

// isFinal reports whether the next try would end the same way.
function isFinal({ status, code }: Problem): boolean {
  return code === malformed || (status >= 400 && status < 500 && status !== 408 && status !== 429)
}

// connection yields what one connection brings, piece by piece. It throws when that
// breaks.
async function* connection(open: (cursor: string, signal: AbortSignal) => Promise<Response>, id: string, options: FollowOptions): AsyncGenerator<Followed[]> {
  const stop = new AbortController()
  const abort = () => stop.abort()
  options.signal?.addEventListener('abort', abort)
  let watch = setTimeout(abort, deadAfter)
  try {
    const answer = await open(id, stop.signal)
    if (!answer.headers.get('Content-Type')?.startsWith('text/event-stream')) throw new Error('something else has answered')
    options.onState?.('live')
    const reader = answer.body!.getReader()
    const frames = new Frames()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      clearTimeout(watch)
      watch = setTimeout(abort, deadAfter)
      yield frames.push(value).map((frame) => {
        const event = eventOf(frame.data)
        if (frame.id) id = frame.id
        else if (event.type === 'stream.reset') id = `${event.from}.0`
        return { id, event }
      })
    }
  } finally {
    clearTimeout(watch)
    options.signal?.removeEventListener('abort', abort)
    stop.abort()
  }
}

function eventOf(data: string): Event {
  try {
    return JSON.parse(data) as Event
  } catch {
    throw new Problem(0, malformed, 'an event of the stream is not JSON')
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
