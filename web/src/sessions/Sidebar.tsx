import { useRef } from 'preact/hooks'
import { helpOpen } from '../app/Help'
import { Mark } from '../app/Mark'
import { route } from '../app/route'
import { projects, report } from '../app/server'
import { lookFor, lookFurther, loaded, nextCursor, sessions, wanted } from './list'
import { SessionRow } from './SessionRow'

const searchAfter = 200 // ms without a key

export function Sidebar() {
  const open = route.value.page === 'session' ? route.value.id : ''
  const several = projects.value.length > 1
  return (
    <nav class="side" aria-label="Sessions">
      <div class="side-head">
        <a class="brand" href="#/"><Mark />Loadline</a>
        <a class="button" href="#/" aria-keyshortcuts="n">New</a>
      </div>
      <Search />
      <ul class="sessions">
        {sessions.value.map((session) => <SessionRow key={session.id} session={session} open={session.id === open} withProject={several} />)}
      </ul>
      {loaded.value && sessions.value.length === 0 && <p class="hint empty">{wanted.value ? 'No title holds this.' : 'Sessions will be listed here.'}</p>}
      {nextCursor.value && <button type="button" class="quiet more" onClick={() => lookFurther().catch(report)}>Older sessions</button>}
      <Footer />
    </nav>
  )
}

function Search() {
  const timer = useRef(0)
  const search = (e: Event) => {
    const title = (e.currentTarget as HTMLInputElement).value.trim().slice(0, 200)
    clearTimeout(timer.current)
    timer.current = Number(setTimeout(() => void lookFor(title), searchAfter))
  }
  return <input id="search" type="search" placeholder="Search titles" aria-label="Search titles" aria-keyshortcuts="/" onInput={search} />
}

function Footer() {
  const { page } = route.value
  const name = encodeURIComponent((projects.value.find((one) => one.default) ?? projects.value[0])?.name ?? '')
  return (
    <div class="side-foot">
      <a href={`#/memory/${name}`} aria-current={page === 'memory' ? 'page' : undefined}>Memory</a>
      <a href={`#/limits/${name}`} aria-current={page === 'limits' ? 'page' : undefined}>Limits</a>
      <button type="button" class="quiet" aria-keyshortcuts="?" onClick={() => { helpOpen.value = true }}>Keys</button>
    </div>
  )
}
