import type { Event, Item, Session, Turn } from './types.js'

// Message is an entry of a conversation: an item, or one that is being written.
export interface Message {
  readonly n: number
  readonly turnID: string
  readonly at: string // when it was stored, or its first piece came
  kind: string
  item?: Item // absent while it is being written
  text: string // what has been written of it; of a tool call, pieces of its arguments
  bytes: number // of text, in UTF-8
  startedAt?: string // of a tool call: when its tool began to run, if that was seen
  progress?: string // of a tool call: the last line of progress of its tool
}

// Change says what an event has changed. A missing field is no change.
export interface Change {
  message?: Message // it grew, or is another item now
  structure?: true // messages came or went
  turn?: string // the id of a turn that changed
  event: Event
}

const encoder = new TextEncoder()

// Conversation is a session's messages and turns, as its events make them. An event
// costs no more than what it changes.
export class Conversation {
  session: Session
  readonly messages: Message[] = [] // by n
  readonly turns = new Map<string, Turn>() // in order of their ids
  #byN = new Map<number, Message>()
  #partial = new Set<Message>() // being written
  #open = new Set<string>() // ids of the turns that have not ended, in order
  #seq = 0
  #listeners = new Set<(change: Change) => void>()

  constructor(session: Session) {
    this.session = session
  }

  // seq is that of the last durable event that was applied.
  get seq(): number { return this.#seq }

  get(n: number): Message | undefined { return this.#byN.get(n) }

  // running is the turn that runs, if one does.
  get running(): Turn | undefined {
    return this.#unended().find((turn) => turn.state === 'running')
  }

  // queue is the turns that wait, oldest first.
  get queue(): Turn[] { return this.#unended().filter((turn) => turn.state === 'queued') }

  // subscribe calls listener after each change, until the returned function is called.
  subscribe(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  // apply takes the next event. One that has been applied, or whose type is unknown,
  // changes nothing.
  apply(event: Event): void {
    const seq = 'seq' in event ? event.seq : undefined
    if (seq !== undefined) {
      if (seq <= this.#seq) return
      this.#seq = seq
    }
    const change = this.#change(event)
    for (const listener of this.#listeners) listener(change)
  }

  // load takes what was read before the events: seq is the session's last one at a
  // time before that.
  load(seq: number, turns: Turn[], items: Item[]): void {
    this.#seq = Math.max(this.#seq, seq)
    for (const turn of turns) this.#keep(turn)
    for (const item of items) this.#put(item)
  }

  #change(event: Event): Change {
    switch (event.type) {
      case 'turn.queued':
      case 'turn.started':
      case 'turn.completed':
      case 'turn.failed':
      case 'turn.cancelled':
      case 'turn.interrupted':
        this.#keep(event.turn)
        return { event, turn: event.turn.id, ...(event.turn.ended_at ? this.#void(event.turn.id) : {}) }
      case 'item':
        return { event, ...this.#put(event.item) }
      case 'item.delta':
        return { event, ...this.#grow(event) }
      case 'tool.started':
      case 'tool.progress': {
        const message = this.#byN.get(event.item_n)
        if (!message) return { event }
        if (event.type === 'tool.started') message.startedAt = event.at
        else message.progress = event.text
        return { event, message }
      }
      case 'step.restarted':
        return { event, ...this.#void(event.turn_id) }
      case 'stream.reset':
        return { event, ...this.#reset(event.from) }
      case 'step.completed': {
        const turn = this.turns.get(event.turn_id)
        if (!turn) return { event }
        const { usage } = turn
        this.turns.set(turn.id, { ...turn, steps: turn.steps + 1, usage: {
          input_tokens: usage.input_tokens + event.usage.input_tokens,
          cached_input_tokens: usage.cached_input_tokens + event.usage.cached_input_tokens,
          output_tokens: usage.output_tokens + event.usage.output_tokens,
        } })
        return { event, turn: turn.id }
      }
      default:
        return { event }
    }
  }

  #unended(): Turn[] { return [...this.#open].map((id) => this.turns.get(id)!) }

  #keep(turn: Turn) {
    this.turns.set(turn.id, turn)
    if (turn.ended_at) this.#open.delete(turn.id)
    else this.#open.add(turn.id)
  }

  #put(item: Item): Partial<Change> {
    const known = this.#byN.get(item.n)
    if (known) {
      known.item = item
      known.kind = item.kind
      this.#partial.delete(known)
      return { message: known }
    }
    const message = { n: item.n, turnID: item.turn_id, at: item.at, kind: item.kind, item, text: '', bytes: 0 }
    this.#insert(message)
    return { message, structure: true }
  }

  #grow(delta: Event & { type: 'item.delta' }): Partial<Change> {
    let message = this.#byN.get(delta.item_n)
    if (message?.item) return {} // it is final
    const isNew = !message
    if (!message) {
      message = { n: delta.item_n, turnID: delta.turn_id, at: delta.at, kind: delta.kind, text: '', bytes: 0 }
      this.#insert(message)
      this.#partial.add(message)
    }
    const skip = message.bytes - delta.at_byte // what is there already
    const bytes = encoder.encode(delta.text)
    if (skip < bytes.length) {
      message.text += skip > 0 ? new TextDecoder().decode(bytes.subarray(skip)) : delta.text
      message.bytes = delta.at_byte + bytes.length
    }
    return isNew ? { message, structure: true } : { message }
  }

  #insert(message: Message) {
    let at = this.messages.length
    while (at > 0 && this.messages[at - 1]!.n > message.n) at--
    this.messages.splice(at, 0, message)
    this.#byN.set(message.n, message)
  }

  // void drops what a turn has begun to write and not stored.
  #void(turnID: string): Partial<Change> {
    return this.#drop([...this.#partial].filter((message) => message.turnID === turnID))
  }

  // reset follows a cursor that the server does not know: everything after from
  // comes again.
  #reset(from: number): Partial<Change> {
    this.#seq = Math.min(this.#seq, from)
    if (from > 0) return this.#drop([...this.#partial])
    this.turns.clear()
    this.#open.clear()
    this.#byN.clear()
    this.#partial.clear()
    this.messages.length = 0
    return { structure: true }
  }

  #drop(gone: Message[]): Partial<Change> {
    for (const message of gone) {
      this.messages.splice(this.messages.lastIndexOf(message), 1)
      this.#byN.delete(message.n)
      this.#partial.delete(message)
    }
    return gone.length > 0 ? { structure: true } : {}
  }
}
