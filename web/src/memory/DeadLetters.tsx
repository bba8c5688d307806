import { usePages } from '../app/load'
import { tell } from '../app/notice'
import { Failure } from '../app/PageHead'
import { sessionAddress } from '../app/route'
import { attempt, server } from '../app/server'
import { ago } from '../app/words'
import { round } from './fresh'
import { outcomes, starts } from './words'

// DeadLetters lists what extraction has set aside, and has it read once more.
export function DeadLetters({ project }: { project: string }) {
  const letters = usePages((cursor, signal) => server.get('/v1/projects/{project}/dead-letters', { params: { project }, query: { cursor, limit: 50 }, signal }), [project, round.value])
  const redrive = async (id: string) => {
    const answer = await attempt(() => server.post('/v1/projects/{project}/dead-letters/{dead_letter_id}/redrive', { params: { project, dead_letter_id: id } }))
    if (!answer) return
    tell(starts[answer.start] ?? answer.start)
    letters.reload()
  }
  return (
    <section class="block" aria-labelledby="letters">
      <h2 id="letters">Set aside</h2>
      <Failure text={letters.failure} />
      {letters.value?.length === 0 && <p class="hint">Nothing. What cannot be read after several tries is set aside here, so that the rest goes on.</p>}
      <ul class="rows">
        {letters.value?.map((letter) => (
          <li key={letter.id} class="row">
            <span>
              <a href={sessionAddress(letter.session_id)}>Items {letter.from_n}–{letter.to_n}</a>{' '}
              <span class="hint">{outcomes[letter.outcome] ?? letter.outcome} {letter.failures} tries · {ago(letter.created_at)}</span>
            </span>
            <button type="button" onClick={() => void redrive(letter.id)}>Read once more</button>
          </li>
        ))}
      </ul>
      {letters.more && <button type="button" class="quiet" onClick={letters.more}>More</button>}
    </section>
  )
}
