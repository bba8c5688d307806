import { useState } from 'preact/hooks'
import { Mark } from './Mark'
import { key, setKey } from './server'

// KeyForm asks for the key that the server wants.
export function KeyForm() {
  const [text, setText] = useState('')
  const submit = (e: Event) => {
    e.preventDefault()
    if (text.trim()) setKey(text)
  }
  return (
    <main class="key">
      <form onSubmit={submit}>
        <Mark />
        <h1>Loadline</h1>
        <p>{key.value ? 'The server does not know this key.' : 'This server wants a key.'} Whoever runs it makes one with <code>server key new</code>.</p>
        <label>
          Key
          <input type="password" autocomplete="off" autofocus value={text} onInput={(e) => setText(e.currentTarget.value)} />
        </label>
        <button type="submit" class="strong">Open</button>
        <p class="hint">It is kept for this tab only, and sent to this server alone.</p>
      </form>
    </main>
  )
}
