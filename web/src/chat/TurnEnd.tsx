import type { Turn } from 'loadline'
import { inWords } from '../app/words'
import { say } from './actions'

// TurnEnd says why a turn did not end as it should, and offers to try again.
export function TurnEnd({ turn }: { turn: Turn }) {
  const code = turn.error?.code ?? turn.state
  const detail = turn.error?.detail ?? ''
  return (
    <div class={`end ${turn.state}`}>
      <p>{inWords(code, detail)}</p>
      {turn.state !== 'cancelled' && detail && <details><summary>What the server says</summary><p><code>{code}</code> {detail}</p></details>}
      <button type="button" onClick={() => void say(turn.session_id, turn.input)}>Try again</button>
    </div>
  )
}
