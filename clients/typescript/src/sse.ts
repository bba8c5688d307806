import { malformed, Problem } from './problem.js'

// Frame is one event of an event stream, as the HTML standard parses it.
export interface Frame {
  id?: string // absent when the frame has none
  event: string
  data: string
}

// maxFrame is how many characters the lines of a frame may have, comments not counted.
const maxFrame = 16 << 20

// Frames parses an event stream that arrives in pieces. A comment is no frame.
export class Frames {
  #decoder = new TextDecoder('utf-8')
  #rest = '' // of a line
  #afterCR = false
  #frame: Partial<Frame> = {}
  #held = 0 // characters in it

  // push takes the next bytes and returns the frames that they complete.
  push(bytes: Uint8Array): Frame[] {
    let text = this.#decoder.decode(bytes, { stream: true })
    if (this.#afterCR && text !== '') {
      if (text[0] === '\n') text = text.slice(1)
      this.#afterCR = false
    }
    const frames: Frame[] = []
    const lines = text.split(/\r\n|\n|\r/)
    for (const line of lines.slice(0, -1)) {
      const frame = this.#line(this.#rest + line)
      this.#rest = ''
      if (frame) frames.push(frame)
    }
    this.#rest += lines.at(-1)
    if (text.endsWith('\r')) this.#afterCR = true
    if (this.#held + this.#rest.length > maxFrame) throw new Problem(0, malformed, 'an event of the stream is too long')
    return frames
  }

  #line(line: string): Frame | undefined {
    if (line === '') {
      const { id, event, data } = this.#frame
      this.#frame = {}
      this.#held = 0
      return data === undefined ? undefined : { id, event: event || 'message', data }
    }
    const colon = line.indexOf(':')
    if (colon === 0) return
    this.#held += line.length
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'event') this.#frame.event = value
    else if (name === 'id' && !value.includes('\0')) this.#frame.id = value
    else if (name === 'data') this.#frame.data = this.#frame.data === undefined ? value : `${this.#frame.data}\n${value}`
    return
  }
}
