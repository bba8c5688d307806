import type { Message as MessageData } from 'loadline'
import { Markdown } from '../markdown/Markdown'
import type { Entry } from './entries'
import type { Open } from './open'
import { Reasoning } from './Reasoning'
import { ToolCard } from './ToolCard'
import { TurnEnd } from './TurnEnd'

// EntryView shows one entry, whatever it is. Messages are the same objects while they
// grow, so a part with a state of its own must be given what it shows, not the message.
export function EntryView({ entry, here }: { entry: Entry; here: Open }) {
  void entry.version.value // it changes with what is shown
  switch (entry.kind) {
    case 'call':
      return <ToolCard entry={entry} here={here} />
    case 'end':
      return entry.turn ? <TurnEnd turn={entry.turn} /> : null
  }
  return entry.message ? <Message message={entry.message} /> : null
}

function Message({ message }: { message: MessageData }) {
  const { item } = message
  switch (message.kind) {
    case 'user_message':
      return <article class="message user" aria-label="You"><p dir="auto">{item?.kind === 'user_message' ? item.user_message.text : message.text}</p></article>
    case 'assistant_message':
      return <Answer message={message} />
    case 'reasoning':
      return <Reasoning text={item?.kind === 'reasoning' ? item.reasoning.text : message.text} complete={item !== undefined} />
    case 'summary':
      return <Note text={item?.kind === 'summary' ? item.summary.text : ''} />
    case 'tool_result':
      return <Note text={item?.kind === 'tool_result' ? item.tool_result.summary : ''} />
  }
  return <p class="unknown">Something newer than this page: {message.kind.slice(0, 80)}. Load the page again, the server may have a newer one.</p>
}

function Answer({ message }: { message: MessageData }) {
  const { item } = message
  const stored = item?.kind === 'assistant_message' ? item.assistant_message : undefined
  return (
    <article class="message answer" aria-label="Answer" aria-busy={!stored}>
      <Markdown text={stored?.text ?? message.text} />
      {stored?.incomplete && <p class="incomplete">The answer ended here, before its end.</p>}
    </article>
  )
}

function Note({ text }: { text: string }) {
  return <details class="note"><summary>Note of the server</summary><p dir="auto">{text}</p></details>
}
