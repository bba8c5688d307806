import type { components } from 'loadline'
import { useState } from 'preact/hooks'
import { usePages } from '../app/load'
import { Failure } from '../app/PageHead'
import { sessionAddress } from '../app/route'
import { server } from '../app/server'
import { round } from './fresh'

type Kind = components['schemas']['RecordKind']
type State = components['schemas']['RecordState']

const kinds: Kind[] = ['preference', 'decision', 'constraint', 'open_question', 'lesson', 'fact']

// Records lists what extraction has found.
export function Records({ project }: { project: string }) {
  const [state, setState] = useState<State | ''>('')
  const [kind, setKind] = useState<Kind | ''>('')
  const records = usePages((cursor, signal) => server.get('/v1/projects/{project}/records', {
    params: { project }, query: { cursor, limit: 50, ...(state && { state }), ...(kind && { kind }) }, signal,
  }), [project, state, kind, round.value])
  return (
    <section class="block" aria-labelledby="records">
      <div class="row">
        <h2 id="records">Records</h2>
        <select aria-label="State" value={state} onChange={(e) => setState(e.currentTarget.value as State | '')}>
          <option value="">open and closed</option>
          <option value="open">open</option>
          <option value="closed">closed</option>
        </select>
        <select aria-label="Kind" value={kind} onChange={(e) => setKind(e.currentTarget.value as Kind | '')}>
          <option value="">all kinds</option>
          {kinds.map((one) => <option key={one} value={one}>{one.replace('_', ' ')}</option>)}
        </select>
      </div>
      <Failure text={records.failure} />
      {records.value?.length === 0 && <p class="hint">None.</p>}
      <ul class="rows">
        {records.value?.map((record) => (
          <li key={record.id}>
            <p dir="auto"><span class="tag">{record.kind.replace('_', ' ')}</span> {record.claim}</p>
            <p class="hint" dir="auto">{record.why}</p>
            <p class="hint">
              {record.n} · {record.state}{record.reason ? `, ${record.reason}` : ''} · <a href={sessionAddress(record.session_id)}>session</a>, items {record.evidence.slice(0, 12).join(', ')}
              {record.stale_after ? ` · until ${new Date(record.stale_after).toLocaleDateString('en-GB')}` : ''}
            </p>
          </li>
        ))}
      </ul>
      {records.more && <button type="button" class="quiet" onClick={records.more}>More records</button>}
    </section>
  )
}
