import { signal } from '@preact/signals'
import { Loadline, Problem, type Project } from 'loadline'
import { tell } from './notice'
import { inWords } from './words'

const keySlot = 'loadline.key'

// key is what this tab sends; "" is none. It ends with the tab.
export const key = signal(sessionStorage.getItem(keySlot) ?? '')

// keyWanted is true when the server has refused a request for want of a key.
export const keyWanted = signal(false)

export const server = new Loadline({ key: () => key.value || undefined })

// projects are those of the server, once they are known.
export const projects = signal<Project[]>([])

export async function loadProjects() {
  projects.value = (await server.get('/v1/projects')).data
}

export function setKey(text: string) {
  key.value = text.trim()
  sessionStorage.setItem(keySlot, key.value)
  keyWanted.value = false
}

// attempt runs what a person has asked for, and tells them in plain words when it
// fails. It returns undefined then.
export async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (err) {
    report(err)
    return undefined
  }
}

// report tells what went wrong; of a missing key, by asking for it.
export function report(err: unknown) {
  if (err instanceof DOMException && err.name === 'AbortError') return
  if (err instanceof Problem && err.code === 'unauthorized') keyWanted.value = true
  else tell(err instanceof Problem ? inWords(err.code, err.detail) : 'The page made a mistake. Load it again.')
}
