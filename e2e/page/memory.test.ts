import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launch, openTab, say } from '../lib/browser'
import { Server } from '../lib/server'

let browser: Browser
let server: Server

beforeAll(async () => {
  browser = await launch()
  server = await Server.start({ manifest: '[memory]\nenabled = true\nextract_threshold_bytes = 1048576\nconsolidation_threshold_records = 1\n' })
})
afterAll(async () => {
  await browser.close()
  await server.close()
})

test('what was said becomes a record, a document, and an older version again', async () => {
  const tab = await openTab(browser, server.url)
  const { page } = tab
  const tell = async (text: string) => {
    await say(page, text)
    await page.locator('.message.user', { hasText: text }).waitFor()
    await page.locator('.session.open .running').waitFor({ state: 'detached' })
    await page.locator('.answer[aria-busy=false]').last().waitFor()
  }
  const readNow = async () => {
    await page.getByRole('link', { name: 'Memory' }).click()
    const passes = page.locator('[aria-labelledby=passes]')
    await passes.locator('.row-button').click()
    await passes.getByText(/wait\./).waitFor()
    await passes.getByRole('button', { name: 'Read now' }).click()
    await passes.getByText('All of it has been read.').waitFor()
    expect(await passes.locator('tbody tr').last().innerText()).toContain('staged')
  }
  const documents = page.locator('[aria-labelledby=documents]')
  const version = (n: number) => expect.poll(() => documents.innerText(), { timeout: 10_000 }).toMatch(new RegExp(`preferences\\s+version ${n}`))

  await tell('I prefer short answers')
  await readNow()
  await page.getByText('The person prefers short answers.').first().waitFor()
  await version(1)
  await page.goBack()
  await tell('I prefer green tea')
  await readNow()
  await version(2)
  await documents.getByRole('button', { name: /preferences/ }).click()
  await documents.getByText('green tea').waitFor()
  await documents.getByRole('combobox').selectOption('1')
  await documents.getByText('green tea').waitFor({ state: 'detached' })
  await documents.getByRole('button', { name: 'Restore this version' }).click()
  await documents.getByText(/preferences\s*version 3/).waitFor()
  await page.getByRole('searchbox', { name: 'Search the memory' }).fill('short answers')
  await page.keyboard.press('Enter')
  await page.locator('.excerpt', { hasText: 'short answers' }).first().waitFor()
  expect(tab.wrong).toEqual([])
})

test('limits say how often each tool was cut', async () => {
  const tab = await openTab(browser, server.url)
  const { page } = tab
  await say(page, '/Glob {"pattern":"**/*"}')
  await page.locator('.tool.ok').waitFor()
  await page.getByRole('link', { name: 'Limits' }).click()
  await expect.poll(() => page.locator('tr', { hasText: 'Glob' }).innerText()).toMatch(/Glob\s+16,384\s+1\s+0\s+0/)
  await page.getByText('default_max_bytes').waitFor()
  expect(tab.wrong).toEqual([])
})
