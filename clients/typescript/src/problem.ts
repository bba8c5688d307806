import type { components } from './api.js'

type Body = components['schemas']['Problem']

// malformed is the code of an answer or an event that no Loadline server sends.
export const malformed = 'malformed'

// Problem is a request that was refused, or that could not be made: then its status
// is 0 and its code network. Branch on code, never on the texts.
export class Problem extends Error {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly errors: { pointer: string; detail: string }[]

  constructor(status: number, code: string, detail: string, errors: Body['errors'] = []) {
    super(`${detail || code} (${code})`)
    this.name = 'Problem'
    this.status = status
    this.code = code
    this.detail = detail
    this.errors = errors
  }
}

// problemOf reads the problem of an answer, of whatever form it is.
export async function problemOf(answer: Response): Promise<Problem> {
  const text = await answer.text().catch(() => '')
  try {
    const body = JSON.parse(text) as Body
    if (typeof body.code === 'string') return new Problem(answer.status, body.code, body.detail ?? body.title ?? '', body.errors)
  } catch {
    // No JSON: something between the server and us has answered.
  }
  return new Problem(answer.status, `http_${answer.status}`, text.slice(0, 200) || answer.statusText)
}
