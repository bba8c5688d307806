const maxPieces = 2000

// escapes are what a terminal would do rather than show: colours (the first group),
// moves, titles.
export const escapes = /\x1b\[([0-9;]*)m|\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\^_]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/g

export interface Piece {
  text: string
  style: string // classes; "" is none
}

// read cuts a text at its colours, and drops every other escape sequence.
export function read(text: string): Piece[] {
  const pieces: Piece[] = []
  let style = ''
  let from = 0
  const add = (part: string) => {
    const last = pieces.at(-1)
    if (last && (last.style === style || pieces.length >= maxPieces)) last.text += part
    else if (part) pieces.push({ text: part, style })
  }
  for (const match of text.matchAll(escapes)) {
    add(text.slice(from, match.index))
    from = match.index + match[0].length
    if (match[1] !== undefined) style = restyle(style, match[1])
  }
  add(text.slice(from))
  return pieces
}

function restyle(style: string, codes: string): string {
  const classes = new Set(style ? style.split(' ') : [])
  const drop = (start: string) => classes.forEach((name) => { if (name.startsWith(start)) classes.delete(name) })
  for (const code of codes.split(';').map(Number)) {
    if (code === 0) classes.clear()
    else if (code === 1) classes.add('bold')
    else if (code === 22) classes.delete('bold')
    else if (code === 39) drop('fg')
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
      drop('fg')
      classes.add(`fg${code % 10}`)
    } else if (code === 38 || code === 48) break // of 256 colours: not shown
  }
  return [...classes].join(' ')
}
