// A chat in React: <Chat sessionID="ses_…" /> shows a session, sends, and stops.
import { useEffect, useMemo, useState, type FormEvent } from 'react'
import { Loadline, Problem, type Conversation, type Message, type State } from 'loadline'

export function Chat({ sessionID, baseURL = '' }: { sessionID: string; baseURL?: string }) {
  const loadline = useMemo(() => new Loadline({ baseURL }), [baseURL])
  const [conversation, setConversation] = useState<Conversation>()
  const [line, setLine] = useState<State>('reconnecting')
  const [problem, setProblem] = useState('')
  const [, redraw] = useState(0)

  useEffect(() => {
    const leave = new AbortController()
    const read = async () => {
      for await (const changed of loadline.converse(sessionID, { signal: leave.signal, onState: setLine })) {
        setConversation(changed)
        redraw((times) => times + 1)
      }
    }
    read().catch((err: unknown) => leave.signal.aborted || setProblem(String(err)))
    return () => leave.abort()
  }, [loadline, sessionID])

  const say = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = event.currentTarget
    const input = String(new FormData(form).get('input'))
    try {
      await loadline.send(sessionID, input)
      form.reset()
      setProblem('')
    } catch (err) {
      setProblem(err instanceof Problem ? err.detail : String(err))
    }
  }

  const running = conversation?.running
  const stop = () => running && loadline.post('/v1/sessions/{session_id}/turns/{turn_id}/cancel', {
    params: { session_id: sessionID, turn_id: running.id },
  })

  return (
    <main>
      <p role="status">{line}</p>
      {conversation?.messages.map((message) => <Line key={message.n} message={message} />)}
      {problem && <p role="alert">{problem}</p>}
      <form onSubmit={say}>
        <input name="input" aria-label="Message" autoComplete="off" />
        <button>Send</button>
        {running && <button type="button" onClick={stop}>Stop</button>}
      </form>
    </main>
  )
}

function Line({ message: { kind, item, text } }: { message: Message }) {
  if (item?.kind === 'user_message') return <p><b>{item.user_message.text}</b></p>
  if (item?.kind === 'tool_call') return <p><code>{item.tool_call.tool}</code></p>
  if (item?.kind === 'tool_result') return <details><summary>{item.tool_result.summary}</summary><pre>{item.tool_result.content}</pre></details>
  if (kind === 'assistant_message') return <p>{item?.kind === 'assistant_message' ? item.assistant_message.text : text}</p>
  return null
}
