import { useState } from 'preact/hooks'
import { useLoad } from '../app/load'
import { Failure } from '../app/PageHead'
import { server } from '../app/server'

// Search looks through documents and records as sessions do.
export function Search({ project }: { project: string }) {
  const [query, setQuery] = useState('')
  const hits = useLoad(async (signal) => {
    if (!query) return undefined
    return (await server.get('/v1/projects/{project}/memory/search', { params: { project }, query: { q: query }, signal })).data
  }, [project, query])
  const submit = (e: Event) => {
    e.preventDefault()
    const field = (e.currentTarget as HTMLFormElement).elements.namedItem('q') as HTMLInputElement
    setQuery(field.value.trim().slice(0, 1000))
  }
  return (
    <div class="block">
      <form class="row" role="search" onSubmit={submit}>
        <input name="q" type="search" aria-label="Search the memory" placeholder="Search the memory" />
        <button type="submit">Search</button>
      </form>
      <Failure text={hits.failure} />
      {hits.value && (
        <ul class="rows" aria-label="What was found">
          {hits.value.map((hit, i) => (
            <li key={i}>
              <span class="tag">{hit.document ? hit.document.name : `record ${hit.record?.n ?? ''}`}</span>
              <p class="excerpt" dir="auto">{hit.excerpt}</p>
            </li>
          ))}
          {hits.value.length === 0 && <li class="hint">Nothing was found.</li>}
        </ul>
      )}
    </div>
  )
}
