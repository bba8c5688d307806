import type { Session } from 'loadline'
import { useState } from 'preact/hooks'
import { useLoad, usePages } from '../app/load'
import { tell } from '../app/notice'
import { Failure } from '../app/PageHead'
import { sessionAddress } from '../app/route'
import { attempt, server } from '../app/server'
import { ago, bytesInWords, grouped, spanInWords } from '../app/words'
import { titleOf } from '../sessions/list'
import { useWatch } from './fresh'
import { outcomes, starts } from './words'

// Passes lists sessions of the project, and how far each has been read.
export function Passes({ project }: { project: string }) {
  const [open, setOpen] = useState('')
  const list = usePages((cursor, signal) => server.get('/v1/sessions', { query: { limit: 50, cursor }, signal }), [])
  const mine = list.value?.filter((session) => session.project === project)
  return (
    <section class="block" aria-labelledby="passes">
      <h2 id="passes">Reading of sessions</h2>
      <Failure text={list.failure} />
      {mine?.length === 0 && <p class="hint">This project has no sessions here.</p>}
      <ul class="rows">
        {mine?.map((session) => (
          <li key={session.id}>
            <button type="button" class="row-button" aria-expanded={open === session.id} onClick={() => setOpen(open === session.id ? '' : session.id)}>
              <strong dir="auto">{titleOf(session).slice(0, 100)}</strong><span class="hint">{ago(session.updated_at)}</span>
            </button>
            {open === session.id && <OfSession session={session} />}
          </li>
        ))}
      </ul>
      {list.more && <button type="button" class="quiet" onClick={list.more}>Older sessions</button>}
    </section>
  )
}

function lagInWords({ pointer, items, bytes }: { pointer: number; items: number; bytes: number }): string {
  if (items === 0) return 'All of it has been read.'
  return `Read up to item ${grouped(pointer)}; ${grouped(items)} more (${bytesInWords(bytes)}) wait.`
}

function OfSession({ session }: { session: Session }) {
  const params = { session_id: session.id }
  const lag = useLoad(async (signal) => (await server.get('/v1/sessions/{session_id}/diagnosis', { params, signal })).memory, [session.id])
  const passes = usePages((cursor, signal) => server.get('/v1/sessions/{session_id}/passes', { params, query: { cursor, limit: 50 }, signal }), [session.id])
  const look = () => {
    passes.reload()
    lag.reload()
  }
  const watch = useWatch(look, JSON.stringify([lag.value?.pointer, passes.value?.length]))
  const readNow = async () => {
    const answer = await attempt(() => server.post('/v1/sessions/{session_id}/extract', { params }))
    if (!answer) return
    tell(starts[answer.start] ?? answer.start)
    if (answer.start === 'started' || answer.start === 'already_running') watch.start()
  }
  return (
    <div class="document">
      <Failure text={lag.failure || passes.failure} />
      <div class="row">
        {lag.value && <p>{lagInWords(lag.value)}</p>}
        <a href={sessionAddress(session.id)}>Open</a>
        <button type="button" disabled={watch.watching} onClick={() => void readNow()}>{watch.watching ? 'Reading …' : 'Read now'}</button>
      </div>
      {passes.value && passes.value.length > 0 && (
        <div class="table-box" tabIndex={0} role="region" aria-label="Passes">
          <table>
            <thead><tr><th>When</th><th>Items</th><th>Outcome</th><th>Records</th><th>Took</th></tr></thead>
            <tbody>
              {passes.value.map((pass) => (
                <tr key={pass.id}>
                  <td>{new Date(pass.started_at).toLocaleString('en-GB')}</td>
                  <td>{pass.from_n}–{pass.to_n}</td>
                  <td title={outcomes[pass.outcome]}>{pass.outcome.replace(/_/g, ' ')}</td>
                  <td>{pass.records}</td>
                  <td>{spanInWords(pass.duration_ms)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {passes.more && <button type="button" class="quiet" onClick={passes.more}>Later passes</button>}
    </div>
  )
}
