import type { Mode } from 'loadline'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { say, stopTurn, takeFocus } from './actions'
import type { Open } from './open'

const drafts = new Map<string, string>() // by session, while the page is open

// Composer is where a message is written. While a turn runs it also stops it, and
// lets choose what the next message does to it. A message can be sent to a session
// that is still being read.
export function Composer({ id = '', here, send }: { id?: string; here?: Open; send?: (text: string) => Promise<boolean> }) {
  const [text, setText] = useState(drafts.get(id) ?? '')
  const [mode, setMode] = useState<Mode>('enqueue')
  const [sending, setSending] = useState(false)
  const field = useRef<HTMLTextAreaElement>(null)
  const running = here?.turns.value.some((turn) => turn.state === 'running') ?? false
  useLayoutEffect(() => fitHeight(field.current), [text])
  useLayoutEffect(() => { if ((send || takeFocus()) && matchMedia('(hover: hover)').matches) field.current?.focus() }, [])
  const write = (next: string) => {
    setText(next)
    drafts.set(id, next)
  }
  const submit = async () => {
    if (text.trim() === '' || sending) return
    setSending(true)
    const sent = await (send ? send(text) : say(id, text, running ? mode : undefined))
    setSending(false)
    if (sent) write('')
  }
  const press = (e: KeyboardEvent) => {
    if (e.key !== 'Enter' || e.shiftKey || e.isComposing) return
    e.preventDefault()
    void submit()
  }
  return (
    <form class="composer" onSubmit={(e) => { e.preventDefault(); void submit() }}>
      <textarea ref={field} rows={1} dir="auto" aria-label="Message" placeholder={running ? 'Say what comes next' : 'Write a message'} value={text}
        onInput={(e) => write(e.currentTarget.value)} onKeyDown={press} />
      <div class="composer-row">
        {running ? <ModeChoice mode={mode} choose={setMode} /> : <span class="hint">Enter sends, Shift + Enter is a new line, <kbd>?</kbd> lists keys</span>}
        {running && <button type="button" class="stop" aria-keyshortcuts="." onClick={() => void stopTurn()}>Stop</button>}
        <button type="submit" class="strong" disabled={text.trim() === '' || sending}>Send</button>
      </div>
    </form>
  )
}

const choices: [Mode, string, string][] = [
  ['enqueue', 'Queue', 'It runs when this turn has ended'],
  ['steer', 'Steer', 'The running turn hears it before its next step'],
  ['interrupt', 'Interrupt', 'The running turn is stopped for it'],
]

function ModeChoice({ mode, choose }: { mode: Mode; choose: (mode: Mode) => void }) {
  return (
    <fieldset class="modes">
      <legend class="off-screen">What the message does to the running turn</legend>
      {choices.map(([value, label, title]) => (
        <label key={value} title={title}>
          <input type="radio" name="mode" value={value} checked={mode === value} onChange={() => choose(value)} />{label}
        </label>
      ))}
    </fieldset>
  )
}

function fitHeight(field: HTMLTextAreaElement | null) {
  if (!field) return
  field.style.height = 'auto'
  field.style.height = `${Math.min(field.scrollHeight, innerHeight * 0.4)}px`
}
