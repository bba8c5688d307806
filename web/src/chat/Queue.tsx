import { stopTurn } from './actions'
import type { Open } from './open'

const modes: Record<string, string> = { enqueue: 'next', interrupt: 'interrupts', steer: 'steers', reject: 'next' }

// Queue lists what waits to run, and what is said while nothing is seen.
export function Queue({ here }: { here: Open }) {
  const queued = here.turns.value.filter((turn) => turn.state === 'queued')
  if (queued.length === 0) return null
  return (
    <ul class="queue" aria-label="Waiting">
      {queued.map((turn) => (
        <li key={turn.id}>
          <span class="tag">{modes[turn.mode] ?? turn.mode}</span>
          <span class="queued-text" dir="auto">{turn.input.slice(0, 300)}</span>
          <button type="button" class="quiet" onClick={() => void stopTurn(turn.id)}>Withdraw</button>
        </li>
      ))}
    </ul>
  )
}
