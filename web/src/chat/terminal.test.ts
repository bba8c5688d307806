import { expect, test } from 'vitest'
import { read } from './terminal'

test.each([
  ['nothing', '', []],
  ['plain text', 'a\tb\nc', [{ text: 'a\tb\nc', style: '' }]],
  ['a colour', '\x1b[31mred\x1b[0m plain', [{ text: 'red', style: 'fg1' }, { text: ' plain', style: '' }]],
  ['bold and bright', '\x1b[1;94mx\x1b[39my\x1b[22mz', [{ text: 'x', style: 'bold fg4' }, { text: 'y', style: 'bold' }, { text: 'z', style: '' }]],
  ['an empty code resets', '\x1b[32ma\x1b[mb', [{ text: 'a', style: 'fg2' }, { text: 'b', style: '' }]],
  ['256 colours are not shown', '\x1b[38;5;196mx\x1b[0m', [{ text: 'x', style: '' }]],
  ['moves, titles and bells are dropped', '\x1b[2J\x1b[1;1Ha\x1b]0;title\x07b\x07\x1b[?25lc', [{ text: 'abc', style: '' }]],
  ['a title without end', 'a\x1b]0;title', [{ text: 'a', style: '' }]],
  ['a lone escape', 'a\x1bb', [{ text: 'ab', style: '' }]],
])('%s', (_, text, want) => {
  expect(read(text)).toEqual(want)
})

test('more colours than anybody needs lose nothing, and make no more pieces', () => {
  const pieces = read('\x1b[31ma\x1b[32mb'.repeat(20_000))
  expect(pieces.length).toBeLessThan(3000)
  expect(pieces.map(({ text }) => text).join('')).toBe('ab'.repeat(20_000))
})
