import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { launch, openTab, say, type Tab } from '../lib/browser'
import { gate, Model } from '../lib/model'
import { Server } from '../lib/server'

let browser: Browser
let model: Model
let server: Server
let tab: Tab

beforeAll(async () => { browser = await launch() })
afterAll(() => browser.close())

beforeEach(async () => {
  model = await Model.start()
  server = await Server.start({ model: model.url })
  writeFileSync(join(server.project, 'long.txt'), Array.from({ length: 3000 }, (_, i) => `line ${i + 1} of the letter あ`).join('\n'))
  tab = await openTab(browser, server.url)
})
afterEach(async () => {
  expect(tab.wrong).toEqual([])
  await tab.page.context().close()
  await server.close()
  await model.close()
  expect(model.problems).toEqual([])
})

test('a cut result says how much was kept, and opens whole', async () => {
  const { page } = tab
  model.add({ calls: [{ tool: 'Grep', arguments: { pattern: 'line' } }] }, { text: ['It is long.'] })
  await say(page, 'read it')
  const card = page.locator('.tool')
  await card.locator('.cut').waitFor()
  expect(await card.locator('.tool-summary').innerText()).toMatch(/3,000 matches/)
  const words = await card.locator('.cut-words').innerText()
  const [, kept, original] = /([\d,]+) of ([\d,]+) bytes kept; limit 16,384/.exec(words) ?? []
  const number = (text = '') => Number(text.replaceAll(',', ''))
  expect(number(kept)).toBeGreaterThan(16_000)
  expect(number(kept)).toBeLessThan(16_384)
  await card.getByText('Open the whole output').click()
  await card.locator('.whole .output').first().waitFor()
  while (await card.getByRole('button', { name: 'Read on' }).isVisible()) {
    const before = await card.locator('.whole .output').count()
    await card.getByRole('button', { name: 'Read on' }).click()
    await expect.poll(() => card.locator('.whole .output').count()).toBe(before + 1)
  }
  const whole = (await card.locator('.whole .output').allTextContents()).join('')
  expect(Buffer.byteLength(whole)).toBe(number(original))
  expect(whole).toContain('line 3000 of the letter あ')
  expect(whole).not.toContain('�')
})

test('a whole output that is gone is told in plain words', async () => {
  const { page } = tab
  model.add({ calls: [{ tool: 'Grep', arguments: { pattern: 'line' } }] }, { text: ['done'] })
  await say(page, 'read it')
  await page.route('**/output', (route) => route.fulfill({ status: 410, contentType: 'application/problem+json', body: '{"code":"output_gone","detail":"gone","status":410,"title":"","type":""}' }))
  await page.getByText('Open the whole output').click()
  await page.getByText('has been removed since to make room').waitFor()
  tab.wrong.length = 0 // the console tells of the 410
})

test('a tool that runs shows it, and its arguments', async () => {
  const { page } = tab
  const half = gate(0)
  model.add({ reasoning: ['I must look.'], calls: [{ tool: 'Read', arguments: { path: 'none.txt' } }] }, { text: ['So it is.'], gate: half.gate })
  await say(page, 'look')
  await page.locator('.tool.failed').waitFor()
  await page.locator('.tool').getByText('Arguments').click()
  expect(await page.locator('.tool pre').first().innerText()).toBe('{\n  "path": "none.txt"\n}')
  expect(await page.locator('.tool-time').innerText()).toMatch(/^failed \d/)
  await expect.poll(() => page.locator('.reasoning summary').innerText()).toBe('Reasoning')
  await page.locator('.reasoning summary').click()
  await page.getByText('I must look.').waitFor()
  half.open()
  await page.locator('.answer', { hasText: 'So it is.' }).waitFor()
  await expect.poll(() => page.locator('.usage').innerText()).toContain('20 in · 4 out') // it comes with the end of the step, after its text
})

test('a turn can be stopped, and tried again', async () => {
  const { page } = tab
  const never = gate(1)
  model.add({ text: ['Half of an '], gate: never.gate })
  await say(page, 'begin')
  await page.locator('.answer', { hasText: 'Half of an' }).waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  await page.locator('.end.cancelled').waitFor()
  await page.locator('.answer').getByText('The answer ended here, before its end.').waitFor()
  model.add({ text: ['Whole.'] })
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.locator('.answer', { hasText: 'Whole.' }).waitFor()
  expect(await page.locator('.message.user').allInnerTexts()).toEqual(['begin', 'begin'])
  never.open()
})

test('a failure is told in plain words, and what was sent goes out again', async () => {
  const { page } = tab
  model.add({ status: 401, message: 'bad key' })
  await say(page, 'hello there')
  await page.locator('.end', { hasText: 'The model could not be asked. Check its address and key' }).waitFor()
  await page.getByText('What the server says').click()
  await page.locator('.end').getByText('provider_error', { exact: true }).waitFor()
  model.add({ text: ['Hello.'] })
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.locator('.answer', { hasText: 'Hello.' }).waitFor()
  expect(await page.locator('.message.user').allInnerTexts()).toEqual(['hello there', 'hello there'])
})

test('messages wait, can be withdrawn, steer and interrupt', async () => {
  const { page } = tab
  const half = gate(1)
  model.add({ text: ['One. '], gate: half.gate }, { text: ['Steered.'] })
  await say(page, 'first')
  await page.locator('.answer', { hasText: 'One.' }).waitFor()
  await say(page, 'second')
  await page.locator('.queue li', { hasText: 'second' }).waitFor()
  await page.getByRole('button', { name: 'Withdraw' }).click()
  await expect.poll(() => page.locator('.queue').count()).toBe(0)
  await page.getByText('Interrupt', { exact: true }).click()
  await say(page, 'rather this')
  await page.locator('.answer', { hasText: 'Steered.' }).waitFor()
  expect(await page.locator('.message.user').allInnerTexts()).toEqual(['first', 'rather this'])
  half.open()
})

test('a tool that takes its time counts the seconds, and two run beside each other', async () => {
  const { page } = tab
  model.add({ calls: [{ tool: 'Bash', arguments: { command: 'while [ ! -e go ]; do sleep 0.05; done; echo first' } }, { tool: 'Bash', arguments: { command: 'echo second' } }] }, { text: ['Both.'] })
  await say(page, 'run')
  await page.locator('.tool.ok').waitFor()
  await page.locator('.tool.running .tool-time', { hasText: /running \d+\.0 s/ }).waitFor()
  expect(await page.locator('.tool').nth(0).getAttribute('class')).toBe('tool running')
  await page.locator('.session.open .running').waitFor()
  writeFileSync(join(server.project, 'go'), '')
  await page.locator('.answer', { hasText: 'Both.' }).waitFor()
  expect(await page.locator('.tool.ok').count()).toBe(2)
})
