import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { launch, openTab, say, watch, type Tab } from '../lib/browser'
import { gate, Model } from '../lib/model'
import { Server } from '../lib/server'

let browser: Browser
let model: Model
let server: Server

beforeAll(async () => { browser = await launch() })
afterAll(() => browser.close())

beforeEach(async () => {
  model = await Model.start()
  server = await Server.start({ model: model.url })
})
afterEach(async () => {
  await server.close()
  await model.close()
})

const networkFails = /net::ERR_|Failed to load resource/

// numbers are words in which a gap or a double is seen.
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => `w${from + i}`).join(' ') + ' '

async function answerIs(tab: Tab, text: string) {
  await expect.poll(() => tab.page.locator('.answer').last().innerText(), { timeout: 20_000 }).toBe(text.trim())
}

test('an answer goes on after the page is loaded again in the middle of it', async () => {
  const half = gate(1)
  model.add({ text: [numbers(1, 50), numbers(51, 100)], gate: half.gate })
  const tab = await openTab(browser, server.url)
  await say(tab.page, 'count')
  await answerIs(tab, numbers(1, 50))
  await tab.page.reload()
  await answerIs(tab, numbers(1, 50))
  half.open()
  await answerIs(tab, numbers(1, 100))
  expect(tab.wrong).toEqual([])
})

test('what is sent to a session that is still being read is not lost', async () => {
  model.add({ text: ['one'] }, { text: ['two'] })
  const tab = await openTab(browser, server.url)
  await say(tab.page, 'first')
  await answerIs(tab, 'one')
  const read = gate(0)
  await tab.page.route(/\/items\?/, async (route) => { await read.gate.open; await route.continue() })
  await tab.page.reload()
  await say(tab.page, 'second')
  await expect.poll(() => tab.page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('')
  read.open()
  await answerIs(tab, 'two')
  expect(tab.wrong).toEqual([])
})

test('two tabs on one session agree', async () => {
  const half = gate(1)
  model.add({ text: [numbers(1, 20), numbers(21, 40)], gate: half.gate }, { text: ['second'] })
  const one = await openTab(browser, server.url)
  await say(one.page, 'count')
  await answerIs(one, numbers(1, 20))
  const two = await watch(await one.page.context().newPage(), one.page.url())
  await answerIs(two, numbers(1, 20))
  half.open()
  await answerIs(one, numbers(1, 40))
  await answerIs(two, numbers(1, 40))
  await say(two.page, 'again')
  await answerIs(one, 'second')
  await answerIs(two, 'second')
  for (const { page } of [one, two]) await page.locator('.waiting').waitFor({ state: 'detached' })
  expect(await one.page.locator('.timeline').innerText()).toBe(await two.page.locator('.timeline').innerText())
  expect([...one.wrong, ...two.wrong]).toEqual([])
})

test('the server dies in mid-answer, starts again, and the answer is whole', async () => {
  const never = gate(1)
  const half = gate(1)
  model.add({ text: [numbers(1, 30)], gate: never.gate }, { text: [numbers(501, 510), numbers(511, 560)], gate: half.gate })
  const tab = await openTab(browser, server.url, { mayFail: networkFails })
  const cursors: string[] = []
  tab.page.on('request', (request) => { if (request.url().endsWith('/events')) cursors.push(request.headers()['last-event-id'] ?? '') })
  await say(tab.page, 'count')
  await answerIs(tab, numbers(1, 30))
  await server.kill()
  await tab.page.locator('.stream.reconnecting').waitFor()
  await server.boot()
  await answerIs(tab, numbers(501, 510)) // what the first try had said is void
  half.open()
  await answerIs(tab, numbers(501, 560))
  await tab.page.locator('.stream.live').waitFor()
  never.open()
  expect(cursors.at(-1)).toMatch(/^\d+\.\d+$/) // it went on inside the text
  expect(tab.wrong).toEqual([])
})

test('offline and back: a mark says so, and nothing is missing', async () => {
  const half = gate(1)
  model.add({ text: [numbers(1, 30), numbers(31, 60)], gate: half.gate })
  const tab = await openTab(browser, server.url, { mayFail: networkFails })
  await say(tab.page, 'count')
  await answerIs(tab, numbers(1, 30))
  await tab.page.context().setOffline(true)
  await server.kill() // setOffline leaves open streams alone
  await tab.page.locator('.stream.offline').waitFor()
  await server.boot()
  model.add({ text: [numbers(1, 60)] })
  await tab.page.context().setOffline(false)
  half.open()
  await tab.page.locator('.stream.live').waitFor()
  await answerIs(tab, numbers(1, 60))
  expect(tab.wrong).toEqual([])
})

test('twenty thousand pieces and a line of 16 KB do not freeze the page', async () => {
  const line = 'x'.repeat(16_384)
  model.add({ text: ['```\n' + line + '\n```\n\n', ...Array.from({ length: 20_000 }, (_, i) => (i % 40 === 39 ? `w${i}\n\n` : `w${i} `))] })
  const tab = await openTab(browser, server.url)
  await tab.page.evaluate(() => {
    const longest = { ms: 0 }
    Object.assign(window, { longest })
    let last = performance.now()
    const look = () => {
      const now = performance.now()
      longest.ms = Math.max(longest.ms, now - last)
      last = now
      setTimeout(look, 0)
    }
    look()
  })
  await say(tab.page, 'much')
  await expect.poll(() => tab.page.locator('.answer').last().innerText().then((text) => text.slice(-6)), { timeout: 40_000 }).toBe('w19999')
  const longest = await tab.page.evaluate(() => (window as unknown as { longest: { ms: number } }).longest.ms)
  console.log(`longest time without a turn of the event loop: ${Math.round(longest)} ms`)
  expect(longest).toBeLessThan(1000)
  expect(tab.wrong).toEqual([])
})
