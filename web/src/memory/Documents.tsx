import { useState } from 'preact/hooks'
import { useLoad } from '../app/load'
import { Failure } from '../app/PageHead'
import { server } from '../app/server'
import { ago, bytesInWords } from '../app/words'
import { round } from './fresh'
import { Document, type DocumentName } from './Document'

// Documents lists the documents of a project, and opens one.
export function Documents({ project }: { project: string }) {
  const [open, setOpen] = useState<DocumentName>()
  const list = useLoad(async (signal) => (await server.get('/v1/projects/{project}/documents', { params: { project }, signal })).data, [project, round.value])
  return (
    <section class="block" aria-labelledby="documents">
      <h2 id="documents">Documents</h2>
      <Failure text={list.failure} />
      {list.value?.length === 0 && <p class="hint">None yet. They are written when enough records have come together.</p>}
      <ul class="rows">
        {list.value?.map((document) => (
          <li key={document.name}>
            <button type="button" class="row-button" aria-expanded={open === document.name} onClick={() => setOpen(open === document.name ? undefined : document.name)}>
              <strong>{document.name.replace('_', ' ')}</strong>
              <span class="hint">version {document.version} · {bytesInWords(document.text_bytes)} · {document.records.length} records · {ago(document.created_at)}</span>
            </button>
            {open === document.name && <Document project={project} name={document.name} newest={document.version} changed={list.reload} />}
          </li>
        ))}
      </ul>
    </section>
  )
}
