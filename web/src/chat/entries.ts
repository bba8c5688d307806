import { signal, type ReadonlySignal } from '@preact/signals'
import type { Conversation, Message, Turn } from 'loadline'

// Entry is one thing in the list of a conversation: a message, a call with its
// result, or how a turn ended.
export interface Entry {
  key: string
  kind: 'message' | 'call' | 'end'
  message?: Message // of an end: none
  result?: Message // of a call, once it is there
  turn?: Turn
  unfolded: Map<string, boolean> // what a person has opened or folded of it; it stays so while it is out of sight
  version: ReadonlySignal<number> // changes with what is shown of the entry
  touched: () => void
}

// entriesOf lists a conversation. Entries that were there before are kept, so that
// what shows them is too.
export function entriesOf(conversation: Conversation, before: Entry[]): Entry[] {
  const known = new Map(before.map((entry) => [entry.key, entry]))
  const results = new Map<number, Message>()
  for (const message of conversation.messages) {
    const item = message.item
    if (item?.kind === 'tool_result') results.set(item.tool_result.call_n, message)
  }
  const entries: Entry[] = []
  const add = (key: string, kind: Entry['kind'], rest: Partial<Entry>) => {
    const entry = known.get(key) ?? makeEntry(key, kind)
    const changed = entry.message !== rest.message || entry.result !== rest.result || entry.turn !== rest.turn
    Object.assign(entry, rest)
    if (changed) entry.touched()
    entries.push(entry)
  }
  const end = (turn: Turn | undefined) => {
    if (turn && (turn.state === 'failed' || turn.state === 'cancelled' || turn.state === 'interrupted')) add(`end-${turn.id}`, 'end', { turn })
  }
  let turnID = ''
  for (const message of conversation.messages) {
    if (message.turnID !== turnID) end(conversation.turns.get(turnID))
    turnID = message.turnID
    const item = message.item
    if (item?.kind === 'tool_result' && conversation.get(item.tool_result.call_n)) continue // shown with its call
    if (message.kind === 'tool_call') {
      add(`n-${message.n}`, 'call', { message, result: results.get(message.n), turn: conversation.turns.get(turnID) })
    } else {
      add(`n-${message.n}`, 'message', { message })
    }
  }
  end(conversation.turns.get(turnID))
  return entries
}

function makeEntry(key: string, kind: Entry['kind']): Entry {
  const version = signal(0)
  return { key, kind, unfolded: new Map(), version, touched: () => { version.value++ } }
}
