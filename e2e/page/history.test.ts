import { Loadline } from 'loadline'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launch, openTab, say } from '../lib/browser'
import { Server } from '../lib/server'

let browser: Browser
let server: Server

const pairs = 5000

beforeAll(async () => {
  browser = await launch()
  server = await Server.start()
})
afterAll(async () => {
  await browser.close()
  await server.close()
})

test('ten thousand items scroll smoothly', async () => {
  const messages = Array.from({ length: pairs }, (_, i) => [
    { role: 'user', content: `Question ${i}` },
    { role: 'assistant', content: `Answer ${i}\n\n- with **some** Markdown\n- and \`code\`\n\n${'More of it. '.repeat(i % 40)}` },
  ]).flat()
  const { session } = await new Loadline({ baseURL: server.url }).post('/v1/sessions/import', { query: { title: 'Long' }, body: messages as never })
  const started = Date.now()
  const tab = await openTab(browser, `${server.url}/#/sessions/${session.id}`)
  const { page } = tab
  await page.getByText(`Question ${pairs - 1}`).waitFor()
  console.log(`ten thousand items are shown after ${Date.now() - started} ms`)
  expect(await page.locator('.entries > div').count()).toBeLessThan(80)
  const slow = await page.evaluate(async () => {
    const box = document.querySelector('.timeline')!
    box.dispatchEvent(new WheelEvent('wheel', { deltaY: -1 }))
    const frames: number[] = []
    let last = performance.now()
    for (let i = 0; i < 120; i++) {
      box.scrollTop -= 900
      await new Promise(requestAnimationFrame)
      const now = performance.now()
      frames.push(now - last)
      last = now
    }
    frames.sort((a, b) => a - b)
    return { median: frames[60]!, p95: frames[114]!, longest: frames.at(-1)! }
  })
  console.log(`a frame while scrolling: median ${Math.round(slow.median)} ms, 95 % within ${Math.round(slow.p95)} ms, longest ${Math.round(slow.longest)} ms`)
  expect(slow.p95).toBeLessThan(100)
  await page.getByRole('button', { name: 'To the end' }).waitFor()
  await page.locator('.timeline').evaluate((box) => { box.scrollTop = 0 })
  await page.getByText('Question 0', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'To the end' }).click()
  await page.getByText(`Question ${pairs - 1}`).waitFor()
  await say(page, 'and now?')
  await page.locator('.answer', { hasText: 'Here is what you can ask me' }).waitFor()
  expect(await page.locator('.timeline').evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight)).toBeLessThan(60)
  expect(tab.wrong).toEqual([])
}, 120_000)

test('who reads further up is not moved while an answer grows below', async () => {
  const { page } = await openTab(browser, server.url)
  await say(page, '/help')
  await page.locator('.answer[aria-busy=false]').waitFor()
  for (let i = 0; i < 2; i++) {
    await say(page, 'list the files')
    await page.locator('.tool.ok').nth(i).waitFor()
  }
  await say(page, '/slow 2000')
  await page.locator('.answer', { hasText: 'Counting:' }).waitFor()
  await page.locator('.timeline').hover()
  await page.mouse.wheel(0, -300)
  await page.getByRole('button', { name: 'To the end' }).waitFor()
  const seen = () => page.locator('.message.user').last().boundingBox().then((box) => box?.y)
  const before = await seen()
  const height = () => page.locator('.timeline').evaluate((box) => box.scrollHeight)
  const grown = await height() + 100
  await expect.poll(height, { timeout: 20_000 }).toBeGreaterThan(grown)
  expect(await seen()).toBe(before)
  await page.keyboard.press('Escape')
  await page.keyboard.press('.')
  await page.locator('.end.cancelled').waitFor()
})
