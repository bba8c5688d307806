import { computed, signal } from '@preact/signals'
import type { Session } from 'loadline'
import { tell } from '../app/notice'
import { go, route, sessionAddress } from '../app/route'
import { attempt, report, server } from '../app/server'

const pageLimit = 50
const undoFor = 6000 // ms until a deletion is carried out
const lookEvery = 4000 // ms

export const wanted = signal('') // what a title must hold
export const nextCursor = signal<string | undefined>(undefined)
export const loaded = signal(false)
const all = signal<Session[]>([])
const leaving = signal<ReadonlySet<string>>(new Set()) // deleted, unless it is undone

// sessions are those to show, newest first.
export const sessions = computed(() => all.value.filter((session) => !leaving.value.has(session.id)))

// look reads the newest sessions again, and keeps older ones that were read before.
export async function look() {
  const title = wanted.value
  const page = await server.get('/v1/sessions', { query: { limit: pageLimit, ...(title && { title }) } })
  if (title !== wanted.value) return // something else is looked for by now
  const oldest = page.data.at(-1)?.id
  const older = page.next_cursor && oldest ? all.value.filter((session) => session.id < oldest) : []
  if (older.length === 0) nextCursor.value = page.next_cursor
  all.value = [...page.data, ...older]
  loaded.value = true
}

export async function lookFor(title: string) {
  wanted.value = title
  all.value = []
  await look().catch(report)
}

export async function lookFurther() {
  const cursor = nextCursor.value
  if (!cursor) return
  const title = wanted.value
  const page = await server.get('/v1/sessions', { query: { limit: pageLimit, cursor, ...(title && { title }) } })
  nextCursor.value = page.next_cursor
  all.value = [...all.value, ...page.data]
}

// keepLooking reads the list again from time to time while the page is seen.
export function keepLooking() {
  const again = () => {
    if (document.visibilityState === 'visible') look().catch(() => { /* the mark of the stream tells */ })
  }
  setInterval(again, lookEvery)
  addEventListener('focus', again)
  addEventListener('online', again)
}

// show takes what is newly known of a session.
export function show(session: Session) {
  const known = all.value.some((other) => other.id === session.id)
  if (known) all.value = all.value.map((other) => (other.id === session.id ? session : other))
  else if (!wanted.value) all.value = [session, ...all.value]
}

export function titleOf(session: Pick<Session, 'title'>): string {
  return session.title.trim() || 'Untitled'
}

export async function create(project?: string, title = ''): Promise<Session> {
  const session = await server.post('/v1/sessions', { body: { title, ...(project && { project }) } })
  show(session)
  return session
}

export async function rename(id: string, title: string) {
  const session = await attempt(() => server.patch('/v1/sessions/{session_id}', { params: { session_id: id }, body: { title } }))
  if (session) show(session)
}

// remove deletes a session after a time in which that can be undone.
export function remove(session: Session) {
  const { id } = session
  leaving.value = new Set([...leaving.value, id])
  const stay = () => { leaving.value = new Set([...leaving.value].filter((other) => other !== id)) }
  const done = async (keepalive: boolean) => {
    removeEventListener('pagehide', hide)
    clearTimeout(timer)
    const deleted = await attempt(async () => {
      await server.delete('/v1/sessions/{session_id}', { params: { session_id: id }, keepalive })
      return true
    })
    if (deleted) all.value = all.value.filter((other) => other.id !== id)
    stay()
  }
  const hide = () => void done(true)
  const timer = setTimeout(() => void done(false), undoFor)
  addEventListener('pagehide', hide)
  const undo = () => {
    removeEventListener('pagehide', hide)
    clearTimeout(timer)
    stay()
  }
  tell(`“${titleOf(session).slice(0, 60)}” is deleted.`, { label: 'Undo', run: undo }, undoFor)
  if (route.value.page === 'session' && route.value.id === id) go('#/')
}

// step opens the session that is so many places below the open one.
export function step(by: number) {
  const open = route.value.page === 'session' ? route.value.id : ''
  const at = sessions.value.findIndex((session) => session.id === open)
  const next = sessions.value[at < 0 ? 0 : Math.min(Math.max(at + by, 0), sessions.value.length - 1)]
  if (next) go(sessionAddress(next.id))
}
