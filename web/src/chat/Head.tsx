import { useEffect, useState } from 'preact/hooks'
import { sideOpen } from '../app/App'
import { grouped } from '../app/words'
import { rename, sessions, titleOf } from '../sessions/list'
import type { Open } from './open'
import { StreamMark } from './StreamMark'

const maxTitle = 200 // characters that are shown

// Head is the line above a conversation: menu, title, usage, state of the stream.
export function Head({ id, here }: { id: string; here?: Open }) {
  const session = sessions.value.find((one) => one.id === id) ?? here?.conversation.session
  const usage = here?.usage.value
  const title = session && titleOf(session).slice(0, maxTitle)
  useEffect(() => {
    document.title = title ? `${title} · Loadline` : 'Loadline'
    return () => { document.title = 'Loadline' }
  }, [title])
  return (
    <header class="head">
      <button type="button" class="quiet menu" aria-label="Sessions" onClick={() => { sideOpen.value = true }}>☰</button>
      {session && <Title key={session.title} id={id} title={session.title} />}
      {usage && usage.input_tokens > 0 && (
        <span class="usage" title={`${grouped(usage.cached_input_tokens)} of the input came from the provider’s cache`}>
          {grouped(usage.input_tokens)} in · {grouped(usage.output_tokens)} out
          <span class="off-screen"> tokens in this session</span>
        </span>
      )}
      <StreamMark />
    </header>
  )
}

function Title({ id, title }: { id: string; title: string }) {
  const [editing, setEditing] = useState(false)
  const shown = titleOf({ title })
  if (!editing) {
    return (
      <h1><button type="button" class="title" dir="auto" title="Rename" aria-keyshortcuts="r" onClick={() => setEditing(true)}>{shown.slice(0, maxTitle)}</button></h1>
    )
  }
  const finish = (text: string | undefined) => {
    setEditing(false)
    if (text !== undefined && text.trim() !== title) void rename(id, text.trim())
  }
  const press = (e: KeyboardEvent) => {
    if (e.isComposing) return
    if (e.key === 'Enter') finish((e.currentTarget as HTMLInputElement).value)
    else if (e.key === 'Escape') finish(undefined)
  }
  return <input class="title-field" aria-label="Title" dir="auto" defaultValue={title} ref={focusOnce} onKeyDown={press} onBlur={(e) => finish(e.currentTarget.value)} />
}

function focusOnce(field: HTMLInputElement | null) {
  if (field && document.activeElement !== field) {
    field.focus()
    field.select()
  }
}
