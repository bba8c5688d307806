import { readdirSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launch, openTab } from '../lib/browser'
import { Server } from '../lib/server'

let browser: Browser
let server: Server

beforeAll(async () => {
  browser = await launch()
  server = await Server.start()
})
afterAll(async () => {
  await browser.close()
  await server.close()
})

test('in an empty folder a suggestion shows a result that is cut, and the rest opens', async () => {
  expect(readdirSync(server.project)).toEqual([])
  const tab = await openTab(browser, server.url)
  const { page } = tab
  await page.getByRole('button', { name: 'A result that is far too long' }).click()
  await page.getByText('Cut. 16,3').waitFor()
  await page.locator('.answer[aria-busy=false]').last().waitFor()
  await page.locator('.waiting').waitFor({ state: 'detached' })
  const card = page.locator('.tool')
  expect(await card.locator('.tool-summary').innerText()).toBe('Primes below 100,000: 9,592 numbers')
  await card.getByRole('button', { name: 'Open the whole output' }).click()
  await card.locator('.whole .output').waitFor()
  const primes = (await card.locator('.whole .output').innerText()).trim().split('\n')
  expect(primes).toHaveLength(9592)
  expect(primes.at(-1)).toBe('99991')
  expect(tab.wrong).toEqual([])
})

test('each of the suggestions does what it says', async () => {
  const { page } = await openTab(browser, server.url)
  for (const [name, done] of [['A long answer', 'Counting: 1 2 3'], ['A tool at work', 'Glob **/*']] as const) {
    await page.goto(`${server.url}/#/`)
    await page.getByRole('button', { name }).click()
    await page.locator('.answer', { hasText: done }).waitFor()
  }
})
