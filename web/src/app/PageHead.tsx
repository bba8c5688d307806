import { sideOpen } from './App'
import { go } from './route'
import { projects } from './server'

// PageHead is the title of a page about one project, and the choice of another.
export function PageHead({ title, page, project }: { title: string; page: 'memory' | 'limits'; project: string }) {
  return (
    <header class="page-head">
      <button type="button" class="quiet menu" aria-label="Sessions" onClick={() => { sideOpen.value = true }}>☰</button>
      <h1>{title}</h1>
      {projects.value.length > 1 && (
        <label class="project">
          Project
          <select value={project} onChange={(e) => go(`#/${page}/${encodeURIComponent(e.currentTarget.value)}`)}>
            {projects.value.map((one) => <option key={one.name} value={one.name}>{one.name}</option>)}
          </select>
        </label>
      )}
    </header>
  )
}

// Failure says in plain words what could not be read.
export function Failure({ text }: { text: string }) {
  return text ? <p class="failure" role="alert">{text}</p> : null
}
