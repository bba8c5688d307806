import { marked, type Token } from 'marked'

// maxBlock is how many characters of one block are read as Markdown: a parser may
// need more than linear time, and nobody reads a paragraph of that size.
const maxBlock = 20_000

// Block is a piece of a text that is shown on its own: a paragraph, a list, a fence.
// One without a token is shown as it stands.
export interface Block {
  raw: string
  token?: Token
}

// Splitter cuts a growing text into blocks. All but the last two are final, so no more
// than these is read again when the text has grown.
export class Splitter {
  readonly blocks: Block[] = []
  #text = ''
  #start = 0 // where the last block begins
  #final = 0 // how many blocks are final

  // update takes the text as it is now, and returns its blocks. A text that does not
  // continue the one before begins anew.
  update(written: string): Block[] {
    const text = written.replace(/\r\n?/g, '\n')
    if (!text.startsWith(this.#text)) {
      this.blocks.length = this.#start = this.#final = 0
    }
    this.#text = text
    this.blocks.length = this.#final
    const rest = text.slice(this.#start)
    if (!this.#readMarkdown(rest)) this.#readPlain(rest)
    return this.blocks
  }

  // readMarkdown returns false when the text is nothing that should be parsed.
  #readMarkdown(rest: string): boolean {
    const paragraph = rest.search(/\n[ \t]*\n/)
    if (rest.length > maxBlock && (paragraph < 0 || paragraph > maxBlock)) return false
    let tokens: Token[]
    try {
      tokens = marked.lexer(rest)
    } catch {
      return false // nested beyond any sense
    }
    const whole = tokens.reduce((sum, token) => sum + token.raw.length, 0) === rest.length
    const open = whole ? firstOpen(tokens) : 0
    for (const [i, token] of tokens.entries()) {
      if (token.type !== 'space') {
        this.blocks.push(token.raw.length > maxBlock ? { raw: token.raw } : { raw: token.raw, token })
      }
      if (i < open) this.#close(token.raw.length)
    }
    return true
  }

  // readPlain cuts an endless block at line ends, or where it has to.
  #readPlain(rest: string) {
    for (let at = 0; at < rest.length; ) {
      const line = rest.lastIndexOf('\n', at + maxBlock)
      const end = Math.min(line > at ? line + 1 : at + maxBlock, rest.length)
      this.blocks.push({ raw: rest.slice(at, end) })
      if (end < rest.length) this.#close(end - at)
      at = end
    }
  }

  #close(length: number) {
    this.#start += length
    this.#final = this.blocks.length
  }
}

// firstOpen is the index of the first token that more text may change: the last one
// that is not blank, or, while that has not ended its first line, the one before it,
// for a line that has only begun may turn out to go on with that.
function firstOpen(tokens: Token[]): number {
  const last = tokens.findLastIndex(({ type }) => type !== 'space')
  if (last < 0 || tokens[last]!.raw.includes('\n')) return Math.max(last, 0)
  return Math.max(tokens.findLastIndex(({ type }, i) => i < last && type !== 'space'), 0)
}
