import { createHash } from 'node:crypto'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launch, openTab, say, watch } from '../lib/browser'
import { Server } from '../lib/server'

let browser: Browser
let server: Server

const key = 'a-key-for-tests'

beforeAll(async () => {
  browser = await launch()
  server = await Server.start({ manifest: `[server.keys]\nanna = "sha256:${createHash('sha256').update(key).digest('hex')}"\n` })
})
afterAll(async () => {
  await browser.close()
  await server.close()
})

const refused = /401/

test('the page asks for a key, and keeps it for the tab', async () => {
  const tab = await openTab(browser, server.url, { mayFail: refused })
  const { page } = tab
  await page.getByLabel('Key').fill('wrong')
  await page.keyboard.press('Enter')
  await page.getByText('The server does not know this key.').waitFor()
  await page.getByLabel('Key').fill(key)
  await page.keyboard.press('Enter')
  await say(page, 'hello')
  await page.locator('.answer[aria-busy=false]').waitFor()
  await page.reload()
  await page.locator('.answer').waitFor()
  expect(page.url()).not.toContain(key)
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage }) + document.cookie)).not.toContain(key)
  const other = await watch(await page.context().newPage(), server.url, refused)
  await other.page.getByLabel('Key').waitFor()
  expect([...tab.wrong, ...other.wrong]).toEqual([])
})
