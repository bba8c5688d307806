import { useState } from 'preact/hooks'
import { sideOpen } from '../app/App'
import { Mark } from '../app/Mark'
import { projects } from '../app/server'
import { begin } from './actions'
import { Composer } from './Composer'

// suggestions show what the server does; the demo model follows them word for word.
const suggestions: { text: string; does: string }[] = [
  { text: 'list the primes below 100000', does: 'A result that is far too long: see it cut, and open the rest' },
  { text: '/slow 200', does: 'A long answer: load the page again in the middle of it' },
  { text: 'list the files', does: 'A tool at work in this folder' },
]

// Welcome is what is there before a session is.
export function Welcome() {
  const first = projects.value.find((one) => one.default) ?? projects.value[0]
  const [chosen, choose] = useState<string>()
  const project = projects.value.find((one) => one.name === chosen) ?? first
  const demo = project?.model.startsWith('demo/')
  const start = (text: string) => begin(text, project?.name)
  return (
    <section class="welcome" aria-labelledby="welcome-title">
      <button type="button" class="quiet menu" aria-label="Sessions" onClick={() => { sideOpen.value = true }}>☰</button>
      <div class="welcome-middle">
        <Mark />
        <h1 id="welcome-title">What shall be done?</h1>
        {demo && <p class="hint">No model is configured, so a demo answers. It follows plain requests with real tools; these three show what the server is for.</p>}
        {demo && (
          <ul class="suggestions">
            {suggestions.map(({ text, does }) => (
              <li key={text}><button type="button" onClick={() => void start(text)}><span>{does}</span><code>{text}</code></button></li>
            ))}
          </ul>
        )}
        {projects.value.length > 1 && (
          <label class="project">
            Project
            <select value={project?.name} onChange={(e) => choose(e.currentTarget.value)}>
              {projects.value.map((one) => <option key={one.name} value={one.name}>{one.name}{one.permission === 'write' ? ' (may write)' : ''}</option>)}
            </select>
          </label>
        )}
      </div>
      <Composer send={start} />
    </section>
  )
}
