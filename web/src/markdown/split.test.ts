import { expect, test } from 'vitest'
import { Splitter } from './split'

const texts: [string, string][] = [
  ['paragraphs', 'One.\n\nTwo, *with* some\nlines.\n\n\nThree.'],
  ['a list', '- a\n- b\n\n  more of b\n\n- c\n\nafter'],
  ['numbers', '1. a\n\n2. b\n\n   more\n3. c\n\nend'],
  ['a fence with blank lines', 'See:\n\n```go\nfunc a() {}\n\n\nfunc b() {}\n```\n\ndone'],
  ['an unclosed fence', 'See:\n\n```\nno end\n\nat all'],
  ['a table', '|a|b|\n|-|-|\n|1|2|\n|3|4|\n\nafter'],
  ['headings and rules', '# A\ntext\n\nB\n---\n\n***\n\n> quote\nlazy\n\nend'],
  ['line ends of Windows', 'a\r\n\r\n- b\r\n- c\r\n\r\nd'],
  ['HTML', '<div>\nx\n\n</div>\n\ny <b>z</b>'],
  ['a paragraph without end', 'word '.repeat(9_000)],
  ['lines without a blank one', `${'x'.repeat(900)}\n`.repeat(50)],
]

const shown = (splitter: Splitter) => splitter.blocks.map(({ raw }) => raw.trimEnd())

test.each(texts)('%s, written piece by piece, end as they do in one piece', (_, text) => {
  const whole = new Splitter()
  whole.update(text)
  for (const size of [1, 7, 64].filter((size) => text.length / size < 3000)) {
    const growing = new Splitter()
    for (let at = 0; at < text.length; at += size) growing.update(text.slice(0, at + size))
    expect(shown(growing), `pieces of ${size}`).toEqual(shown(whole))
  }
})

test.each(texts)('%s lose nothing', (_, text) => {
  const splitter = new Splitter()
  splitter.update(text)
  const letters = (s: string) => s.replace(/\s+/g, '')
  expect(letters(splitter.blocks.map(({ raw }) => raw).join(''))).toBe(letters(text))
})

test('blocks that are final are kept as they are', () => {
  const splitter = new Splitter()
  splitter.update('One.\n\nTwo.\n\nThree\n')
  const [first, second] = splitter.blocks
  splitter.update('One.\n\nTwo.\n\nThree\n\nFour.')
  expect(splitter.blocks[0]).toBe(first)
  expect(splitter.blocks[1]).toBe(second)
  expect(shown(splitter)).toEqual(['One.', 'Two.', 'Three', 'Four.'])
})

test('another text begins anew', () => {
  const splitter = new Splitter()
  splitter.update('One.\n\nTwo.')
  splitter.update('Other.')
  expect(shown(splitter)).toEqual(['Other.'])
})

test('what nests without end is shown as it stands', () => {
  const splitter = new Splitter()
  splitter.update('> '.repeat(5_000) + 'deep')
  expect(splitter.blocks.every(({ token }) => token === undefined)).toBe(true)
})
