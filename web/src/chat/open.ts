import { batch, signal, type Signal } from '@preact/signals'
import { Problem, type Conversation, type Message, type State, type Turn } from 'loadline'
import { keyWanted, report, server } from '../app/server'
import { show } from '../sessions/list'
import { announce } from './announce'
import { entriesOf, type Entry } from './entries'

// Open is the session that the page shows. What changes often has a signal of its own.
export interface Open {
  id: string
  conversation: Conversation
  entries: Signal<Entry[]>
  turns: Signal<Turn[]> // running and queued ones, in order
  usage: Signal<Turn['usage']>
  waiting: Signal<string> // why the model is silent; "" when it is not
}

export const open = signal<Open | undefined>(undefined)
export const streamState = signal<State>('reconnecting')
export const gone = signal(false) // the session is not there, or no more

let stop: AbortController | undefined

// follow opens a session and keeps what is shown of it up to date, until close or
// another session is opened.
export async function follow(id: string) {
  close()
  const mine = (stop = new AbortController())
  try {
    const changes = server.converse(id, { signal: mine.signal, onState: (state) => { streamState.value = state } })
    for await (const conversation of changes) {
      if (mine.signal.aborted) return
      if (open.value?.conversation !== conversation) begin(id, conversation)
    }
  } catch (err) {
    if (mine.signal.aborted) return
    if (err instanceof Problem && err.status === 404) gone.value = true
    else report(err)
    if (err instanceof Problem && err.code === 'network') retryLater(id, mine)
  }
}

export function close() {
  stop?.abort()
  batch(() => {
    open.value = undefined
    gone.value = false
    streamState.value = 'reconnecting'
  })
}

function retryLater(id: string, mine: AbortController) {
  streamState.value = navigator.onLine ? 'reconnecting' : 'offline'
  setTimeout(() => { if (!mine.signal.aborted && !keyWanted.value) void follow(id) }, 2000)
}

function begin(id: string, conversation: Conversation) {
  const view: Open = { id, conversation, entries: signal([]), turns: signal([]), usage: signal(conversation.session.last_seq ? sum(conversation) : none), waiting: signal('') }
  const dirty = new Set<Message>()
  let structure = true
  let frame = 0
  const draw = () => {
    frame = 0
    batch(() => {
      if (structure) view.entries.value = entriesOf(conversation, view.entries.value)
      for (const message of dirty) view.entries.value.find((entry) => touches(entry, message))?.touched()
      view.turns.value = [...conversation.turns.values()].filter((turn) => turn.state === 'running' || turn.state === 'queued')
      view.usage.value = sum(conversation)
    })
    structure = false
    dirty.clear()
  }
  conversation.subscribe((change) => {
    structure ||= change.structure === true || change.turn !== undefined || change.message?.item !== undefined
    if (change.message) dirty.add(change.message)
    const { event } = change
    if (event.type === 'step.waiting') view.waiting.value = 'Waiting for the minute’s budget of tokens'
    else if (event.type === 'step.retrying' || event.type === 'step.restarted') view.waiting.value = `Asking the model again: ${event.reason}`
    else if (event.type !== 'memory.extract') view.waiting.value = ''
    if (change.turn) showState(conversation)
    announce(change, conversation)
    frame ||= later(draw)
  })
  draw()
  open.value = view
}

// later draws with the next frame; a hidden page has none.
function later(draw: () => void): number {
  return document.visibilityState === 'visible' ? requestAnimationFrame(draw) : Number(setTimeout(draw, 250))
}

function touches(entry: Entry, message: Message): boolean {
  return entry.message === message || entry.result === message
}

function showState(conversation: Conversation) {
  const { session } = conversation
  show({ ...session, state: conversation.running ? 'running' : 'idle', queued: conversation.queue.length })
}

const none = { input_tokens: 0, cached_input_tokens: 0, output_tokens: 0 }

function sum(conversation: Conversation): Turn['usage'] {
  const total = { ...none }
  for (const { usage } of conversation.turns.values()) {
    total.input_tokens += usage.input_tokens
    total.cached_input_tokens += usage.cached_input_tokens
    total.output_tokens += usage.output_tokens
  }
  return total
}
