import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Chat } from '../chat/Chat'
import { Welcome } from '../chat/Welcome'
import { Limits } from '../limits/Limits'
import { Memory } from '../memory/Memory'
import { keepLooking, look } from '../sessions/list'
import { Sidebar } from '../sessions/Sidebar'
import { Help } from './Help'
import { KeyForm } from './KeyForm'
import { Notices } from './Notices'
import { route } from './route'
import { key, keyWanted, loadProjects, report } from './server'
import { useShortcuts } from './shortcuts'

// sideOpen tells whether the list of sessions is shown on a narrow screen.
export const sideOpen = signal(false)

export function App() {
  useShortcuts()
  useEffect(keepLooking, [])
  useEffect(() => {
    Promise.all([loadProjects(), look()]).catch(report)
  }, [key.value])
  useEffect(() => { sideOpen.value = false }, [route.value])
  if (keyWanted.value) return <KeyForm />
  return (
    <div class={sideOpen.value ? 'app side-open' : 'app'}>
      <a class="skip" href="#main" onClick={skip}>Skip to the conversation</a>
      <Sidebar />
      {sideOpen.value && <button type="button" class="shade" aria-label="Close the list of sessions" onClick={() => { sideOpen.value = false }} />}
      <main id="main" tabIndex={-1}><Page key={key.value} /></main>
      <Help />
      <Notices />
    </div>
  )
}

function Page() {
  const { value } = route
  switch (value.page) {
    case 'session':
      return <Chat key={value.id} id={value.id} />
    case 'memory':
      return <Memory key={value.project} project={value.project} />
    case 'limits':
      return <Limits key={value.project} project={value.project} />
  }
  return <Welcome />
}

function skip(e: Event) {
  e.preventDefault() // the part after # is the page's own
  document.getElementById('main')?.focus()
}
