import type { paths } from './api.js'
import { Conversation } from './conversation.js'
import { follow, sleep, type FollowOptions, type Followed } from './follow.js'
import { malformed, Problem, problemOf } from './problem.js'
import type { Item, Mode, Session, Turn } from './types.js'

type Method = 'get' | 'post' | 'patch' | 'delete'
type PathsOf<M extends Method> = { [P in keyof paths]: paths[P][M] extends { responses: unknown } ? P : never }[keyof paths]
type Operation<P extends keyof paths, M extends Method> = paths[P][M]
type Parameters<O, Where extends string> = O extends { parameters: { [W in Where]?: infer Q } } ? Q : never
type Answer<O> = O extends { responses: infer R }
  ? { [S in keyof R]: S extends 204 ? void : S extends 200 | 201 | 202 ? (R[S] extends { content: { 'application/json': infer J } } ? J : never) : never }[keyof R]
  : never

type Body<O> = O extends { requestBody?: { content: { 'application/json': infer B } } } ? B : never

// Request is what a call may bring beside its path.
export interface Request<O> {
  params?: Parameters<O, 'path'>
  query?: Parameters<O, 'query'>
  body?: Body<O>
  headers?: Record<string, string>
  signal?: AbortSignal
  keepalive?: boolean // whether it may outlive the page
}

// Needs is what of it the call cannot do without.
type Needs<O> = (O extends { parameters: { path: object } } ? { params: Parameters<O, 'path'> } : unknown) & (O extends { requestBody: object } ? { body: Body<O> } : unknown)
type Rest<O> = object extends Needs<O> ? [request?: Request<O>] : [request: Request<O> & Needs<O>]

export interface Options {
  baseURL?: string // with or without a slash at its end; absent is the page's own server
  key?: string | (() => string | undefined)
  fetch?: typeof fetch
}

export interface SendOptions {
  mode?: Mode
  expectedTurn?: string // of mode steer
  idempotencyKey?: string // absent is a new one
  signal?: AbortSignal
}

const sendTries = 5
const longestTry = 30_000 // ms

// Loadline is a client of one server. It keeps no state but its options.
export class Loadline {
  #options: Options

  constructor(options: Options = {}) {
    this.#options = options
  }

  get<P extends PathsOf<'get'>>(path: P, ...[request]: Rest<Operation<P, 'get'>>): Promise<Answer<Operation<P, 'get'>>> {
    return this.#json('GET', path, request)
  }

  post<P extends PathsOf<'post'>>(path: P, ...[request]: Rest<Operation<P, 'post'>>): Promise<Answer<Operation<P, 'post'>>> {
    return this.#json('POST', path, request)
  }

  patch<P extends PathsOf<'patch'>>(path: P, ...[request]: Rest<Operation<P, 'patch'>>): Promise<Answer<Operation<P, 'patch'>>> {
    return this.#json('PATCH', path, request)
  }

  delete<P extends PathsOf<'delete'>>(path: P, ...[request]: Rest<Operation<P, 'delete'>>): Promise<Answer<Operation<P, 'delete'>>> {
    return this.#json('DELETE', path, request)
  }

  // fetch makes a request with the key and returns its answer, whatever it holds. It
  // throws a Problem when the request is refused or cannot be made.
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const { baseURL = '', key, fetch: use = globalThis.fetch } = this.#options
    const headers = new Headers(init.headers)
    const bearer = typeof key === 'function' ? key() : key
    if (bearer) headers.set('Authorization', `Bearer ${bearer}`)
    let answer: Response
    try {
      answer = await use(baseURL.replace(/\/+$/, '') + path, { ...init, headers })
    } catch (err) {
      if (left(init.signal)) throw err
      throw new Problem(0, 'network', 'the server cannot be reached')
    }
    if (!answer.ok) throw await problemOf(answer)
    return answer
  }

  // follow yields the events of a session; see there for how it ends. After now comes
  // first what has been written of the running answer.
  follow(sessionID: string, options: FollowOptions = {}): AsyncGenerator<Followed> {
    const params = { session_id: sessionID }
    const path = fill('/v1/sessions/{session_id}/events', params)
    let now: string | undefined // so that it means the same when the first line breaks
    return follow(async (cursor, signal) => {
      if (cursor === 'now') cursor = now ??= textAfter((await this.get('/v1/sessions/{session_id}', { params, signal })).last_seq)
      return this.fetch(path, { signal, cache: 'no-store', headers: { Accept: 'text/event-stream', 'Last-Event-ID': cursor } })
    }, options)
  }

  // converse yields a session's conversation when its history is read, then after
  // each event.
  async *converse(sessionID: string, options: FollowOptions = {}): AsyncGenerator<Conversation> {
    const { signal } = options
    const params = { session_id: sessionID }
    const session: Session = await this.get('/v1/sessions/{session_id}', { params, signal })
    const conversation = new Conversation(session)
    const [turns, items] = await Promise.all([
      this.#all<Turn>((cursor) => this.get('/v1/sessions/{session_id}/turns', { params, query: { limit: 200, cursor }, signal })),
      this.#all<Item>((cursor) => this.get('/v1/sessions/{session_id}/items', { params, query: { limit: 200, cursor }, signal })),
    ])
    conversation.load(session.last_seq, turns, items)
    for (const item of await this.#settled(sessionID, items, signal)) conversation.load(0, [], [item])
    yield conversation
    for await (const { event } of this.follow(sessionID, { ...options, after: textAfter(session.last_seq) })) {
      conversation.apply(event)
      yield conversation
    }
  }

  // send posts a turn. It is tried again when the network fails, or what stands before
  // the server does, and never posted twice.
  async send(sessionID: string, input: string, options: SendOptions = {}): Promise<Turn> {
    const { mode, expectedTurn, idempotencyKey = newKey() } = options
    for (let tries = 1; ; tries++) {
      const signal = AbortSignal.any([AbortSignal.timeout(longestTry), ...(options.signal ? [options.signal] : [])])
      try {
        return await this.post('/v1/sessions/{session_id}/turns', {
          params: { session_id: sessionID }, signal, headers: { 'Idempotency-Key': idempotencyKey },
          body: { input, ...(mode && { mode }), ...(expectedTurn && { expected_turn: expectedTurn }) } as never,
        }) as Turn
      } catch (err) {
        if (options.signal?.aborted || !(err instanceof Problem) || !/^network$|^http_5/.test(err.code) || tries === sendTries) throw err
        await sleep(200 * 2 ** tries, options.signal)
      }
    }
  }

  // settled reads the results that are final behind one that is still open, where
  // pages of items end. Each call has one result, and they are numbered in a row.
  async #settled(sessionID: string, items: Item[], signal?: AbortSignal): Promise<Item[]> {
    const last = items.at(-1)?.n ?? 0
    const open = items.reduce((calls, { kind }) => calls + Number(kind === 'tool_call') - Number(kind === 'tool_result'), 0)
    const pages = await Promise.all(Array.from({ length: open }, (_, i) => this.get('/v1/sessions/{session_id}/items', {
      params: { session_id: sessionID }, query: { cursor: String(last + i), limit: 1 }, signal,
    })))
    return pages.flatMap((page) => page.data)
  }

  async #all<T>(read: (cursor: string | undefined) => Promise<{ data: T[]; next_cursor?: string }>): Promise<T[]> {
    const all: T[] = []
    for (let cursor: string | undefined; ;) {
      const page = await read(cursor)
      for (const entry of page.data) all.push(entry)
      if (!page.next_cursor) return all
      cursor = page.next_cursor
    }
  }

  async #json<T>(method: string, path: string, request: object = {}): Promise<T> {
    const { params, query, body, headers, signal, keepalive } = request as Omit<Request<never>, 'params' | 'query' | 'body'> & { params?: Record<string, unknown>; query?: Record<string, unknown>; body?: unknown }
    const answer = await this.fetch(fill(path, params) + encode(query), {
      method, signal, keepalive,
      headers: { Accept: 'application/json', ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    if (answer.status === 204) return undefined as T
    try {
      return await answer.json() as T
    } catch (err) {
      if (left(signal)) throw err
      if (err instanceof SyntaxError) throw new Problem(answer.status, malformed, 'the answer is not JSON')
      throw new Problem(0, 'network', 'the answer broke off')
    }
  }
}

// left reports whether the caller has given up, not a limit of time.
function left(signal?: AbortSignal | null): boolean {
  return !!signal?.aborted && signal.reason?.name !== 'TimeoutError'
}

function fill(path: string, params: Record<string, unknown> = {}): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(params[name])))
}

function encode(query: Record<string, unknown> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined) as [string, string][]
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

// textAfter is the id from which the stream brings what comes after the durable event
// seq, and all that has been written of the running answer, also before that event.
function textAfter(seq: number): string { return `${seq}.0` }

// newKey also works where a page has no secure context, and so no randomUUID.
function newKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
