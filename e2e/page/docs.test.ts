import axe from 'axe-core'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Browser } from 'playwright-core'
import { launch, openTab } from '../lib/browser'
import { Server, root } from '../lib/server'

// The contract is asked for its operations by its lines: not in the way of the page.
const contract = readFileSync(join(root, 'openapi.yaml'), 'utf8')
const operations = [...contract.matchAll(/^ {6}operationId: (\w+)$/gm)].map((match) => match[1]!)
const forms = [...contract.split('\n  schemas:\n')[1]!.matchAll(/^ {4}(\w+):$/gm)].map((match) => match[1]!)
const phone = { viewport: { width: 360, height: 720 }, colorScheme: 'dark' as const }

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

test('the contract can be read at /docs: each operation and each form is there, and no request goes elsewhere', async () => {
  const { page, wrong } = await openTab(browser, `${server.url}/docs`)
  expect(operations.length).toBeGreaterThan(40)
  expect(await page.locator('article').evaluateAll((all) => all.map((one) => one.id))).toEqual(expect.arrayContaining(operations))
  for (const form of forms) expect(await page.locator(`#schema-${form}`).count(), form).toBe(1)
  expect(wrong).toEqual([])
})

test('every link of the contents and of the forms leads somewhere', async () => {
  const { page } = await openTab(browser, `${server.url}/docs`)
  const lost = await page.locator('a[href^="#"]').evaluateAll((links) => links.map((link) => link.getAttribute('href')!).filter((href) => !document.getElementById(href.slice(1))))
  expect(lost).toEqual([])
  await page.getByRole('link', { name: 'Post a turn', exact: true }).click()
  expect(await page.locator('article:target').getByRole('heading', { level: 3 }).textContent()).toBe('Post a turn')
  await expect.poll(() => page.locator('#submitTurn').evaluate((one) => Math.abs(one.getBoundingClientRect().top))).toBeLessThan(40)
})

test('what an operation wants and answers is on the page', async () => {
  const { page } = await openTab(browser, `${server.url}/docs`)
  const text = await page.locator('#submitTurn').innerText()
  for (const part of ['POST', '/v1/sessions/{session_id}/turns', 'Idempotency-Key', 'application/json', 'NewTurn', '202', 'text/event-stream']) expect(text).toContain(part)
  expect(await page.locator('#getHealth').innerText()).toContain('needs no key')
})

test.each([['in the light', {}], ['on a phone in the dark', phone]])('it fits and is legible %s', async (_, options) => {
  const { page, wrong } = await openTab(browser, `${server.url}/docs`, { ...options, bypassCSP: true }) // for axe, which is put into the page
  expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)).toBeLessThanOrEqual(0)
  const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  expect(paper).toBe('colorScheme' in options ? 'rgb(18, 23, 26)' : 'rgb(251, 250, 247)')
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate(() => (window as unknown as { axe: typeof axe }).axe.run())
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes[0]!.html.slice(0, 200)}`)).toEqual([])
  expect(wrong).toEqual([])
})

test('a server with keys shows the contract to everybody', async () => {
  const closed = await Server.start({ manifest: `[server.keys]\nann = "sha256:${'0'.repeat(64)}"` })
  const { page, wrong } = await openTab(browser, `${closed.url}/docs`)
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('the API')
  expect(wrong).toEqual([])
  await closed.close()
})
