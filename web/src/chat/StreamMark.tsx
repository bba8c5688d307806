import { streamState } from './open'

const words = { live: 'live', reconnecting: 'reconnecting', offline: 'offline' }

// StreamMark tells quietly whether what is shown is up to date.
export function StreamMark() {
  const state = streamState.value
  return <span class={`stream ${state}`} role="status"><span class="dot" aria-hidden="true" />{words[state]}</span>
}
