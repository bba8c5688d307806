import type { components } from 'loadline'
import { useState } from 'preact/hooks'
import { useLoad, usePages } from '../app/load'
import { tell } from '../app/notice'
import { Failure } from '../app/PageHead'
import { attempt, server } from '../app/server'
import { Markdown } from '../markdown/Markdown'

export type DocumentName = components['schemas']['DocumentName']

interface Props {
  project: string
  name: DocumentName
  newest: number
  changed: () => void
}

// Document shows one version of a document, and makes an older one the newest again.
export function Document({ project, name, newest, changed }: Props) {
  const params = { project, name }
  const [chosen, choose] = useState<number>()
  const version = chosen ?? newest
  const versions = usePages((cursor, signal) => server.get('/v1/projects/{project}/documents/{name}/versions', { params, query: { cursor, limit: 50 }, signal }), [project, name, newest])
  const document = useLoad((signal) => server.get('/v1/projects/{project}/documents/{name}', { params, query: { version }, signal }), [project, name, version])
  const restore = async () => {
    const made = await attempt(() => server.post('/v1/projects/{project}/documents/{name}/restore', { params, body: { version } }))
    if (!made) return
    tell(`Version ${version} is in force again, as version ${made.version}.`)
    choose(undefined)
    changed()
  }
  return (
    <div class="document">
      <div class="row">
        <label>
          Version{' '}
          <select value={version} onChange={(e) => choose(Number(e.currentTarget.value))}>
            {versions.value?.map((one) => (
              <option key={one.version} value={one.version}>
                {one.version}{one.version === newest ? ' (in force)' : ''} · {new Date(one.created_at).toLocaleString('en-GB')}{one.restored_from ? ` · as ${one.restored_from}` : ''}
              </option>
            ))}
          </select>
        </label>
        {versions.more && <button type="button" class="quiet" onClick={versions.more}>Older versions</button>}
        {version !== newest && <button type="button" onClick={() => void restore()}>Restore this version</button>}
      </div>
      <Failure text={document.failure} />
      {document.value?.text && <Markdown text={document.value.text} />}
    </div>
  )
}
