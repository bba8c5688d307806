import { Loadline } from 'loadline'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { launch, openTab, say, type Tab } from '../lib/browser'
import { root, Server } from '../lib/server'

let browser: Browser
let server: Server
let client: Loadline
let tab: Tab

beforeAll(async () => { browser = await launch() })
afterAll(() => browser.close())

beforeEach(async () => {
  server = await Server.start({ manifest: `[projects.other]\nroot = ${JSON.stringify(root)}\n` })
  client = new Loadline({ baseURL: server.url })
  for (const title of ['The first letter', 'Numbers', 'x'.repeat(10_000)]) await client.post('/v1/sessions', { body: { title } })
  tab = await openTab(browser, server.url)
})
afterEach(async () => {
  expect(tab.wrong).toEqual([])
  await tab.page.context().close()
  await server.close()
})

const titles = () => tab.page.locator('.session-title').allInnerTexts()

test('sessions are found by title', async () => {
  await expect.poll(titles).toHaveLength(3)
  await tab.page.keyboard.press('Escape')
  await tab.page.keyboard.press('/')
  await tab.page.keyboard.type('LETTER')
  await expect.poll(titles).toEqual(['The first letter'])
  await tab.page.locator('#search').fill('nothing like it')
  await tab.page.getByText('No title holds this.').waitFor()
})

test('a session is made in the project that was chosen, and named after its first words', async () => {
  await tab.page.getByLabel('Project').selectOption('other')
  await say(tab.page, 'hello  over there')
  await tab.page.locator('.answer').waitFor()
  const { data } = await client.get('/v1/sessions')
  expect(data[0]).toMatchObject({ project: 'other', title: 'hello over there' })
})

test('a session is renamed, and told when it is renamed elsewhere', async () => {
  await tab.page.getByRole('link', { name: 'Numbers' }).click()
  await tab.page.locator('button.title').click()
  await tab.page.getByRole('textbox', { name: 'Title' }).fill('Figures')
  await tab.page.keyboard.press('Enter')
  await expect.poll(titles).toContain('Figures')
  const session = (await client.get('/v1/sessions', { query: { title: 'Figures' } })).data[0]!
  await client.patch('/v1/sessions/{session_id}', { params: { session_id: session.id }, body: { title: 'Sums' } })
  await expect.poll(titles, { timeout: 10_000 }).toContain('Sums')
})

test('a deletion can be undone, and is carried out when the page is left', async () => {
  const { page } = tab
  const row = page.locator('.session', { hasText: 'Numbers' })
  await row.hover()
  await row.getByRole('button').click()
  await expect.poll(titles).toHaveLength(2)
  await page.getByRole('button', { name: 'Undo' }).click()
  await expect.poll(titles).toHaveLength(3)
  expect((await client.get('/v1/sessions')).data).toHaveLength(3)
  await row.hover()
  await row.getByRole('button').click()
  await expect.poll(titles).toHaveLength(2)
  await page.reload()
  await expect.poll(async () => (await client.get('/v1/sessions')).data.length).toBe(2)
})

test('a session that is deleted elsewhere is told to be gone', async () => {
  await tab.page.getByRole('link', { name: 'Numbers' }).click()
  await tab.page.locator('.stream.live').waitFor()
  const session = (await client.get('/v1/sessions', { query: { title: 'Numbers' } })).data[0]!
  await client.delete('/v1/sessions/{session_id}', { params: { session_id: session.id } })
  await tab.page.getByText('This session is not there').waitFor()
  tab.wrong.length = 0 // the console tells of the 404
})
