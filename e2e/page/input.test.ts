import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { launch, openTab, say, type Tab } from '../lib/browser'
import { Model } from '../lib/model'
import { Server } from '../lib/server'

let browser: Browser
let model: Model
let server: Server
let tab: Tab

const coloured = '\x1b[31mred\x1b[0m plain \x1b]0;title\x07<img src=x onerror="window.ran=1"> <b>bold</b>'

beforeAll(async () => { browser = await launch() })
afterAll(() => browser.close())

beforeEach(async () => {
  model = await Model.start()
  server = await Server.start({ model: model.url })
  writeFileSync(join(server.project, 'colour.txt'), coloured)
  tab = await openTab(browser, server.url)
})
afterEach(async () => {
  expect(await tab.page.evaluate(() => (window as unknown as { ran?: number }).ran)).toBeUndefined()
  expect(tab.wrong).toEqual([])
  await tab.page.context().close()
  await server.close()
  await model.close()
})

async function answered(text: string) {
  model.add({ text: [text] })
  await say(tab.page, 'go')
  await tab.page.locator('.answer[aria-busy=false]').waitFor()
  return tab.page.locator('.answer').last()
}

test.each([
  ['a script', '<script>window.ran=1</script>ok'],
  ['a handler', '<img src="x" onerror="window.ran=1">ok'],
  ['an svg', '<svg onload="window.ran=1"><script>window.ran=1</script></svg>ok'],
  ['a link that runs', '[ok](javascript:window.ran=1) <a href="javascript:window.ran=1">ok</a>'],
  ['a frame', '<iframe src="data:text/html,<script>parent.ran=1</script>"></iframe>ok'],
  ['a form', '<form action="/x"><input name=a><button>ok</button></form>'],
  ['a style', '<style>body{display:none}</style><p style="position:fixed" id="page" class="app">ok</p>'],
  ['a foreign picture', '![ok](https://example.com/x.png)'],
  ['a broken tag', '<<p/onclick=window.ran=1>ok<math><mtext></p><style><img src=x onerror=window.ran=1>'],
])('%s in an answer does nothing', async (_, text) => {
  const answer = await answered(text)
  expect(await answer.innerText()).toContain('ok')
  expect(await answer.locator('script, img, svg, iframe, form, input, style, [style], [id], [onerror], [onclick], .app').count()).toBe(0)
  for (const link of await answer.locator('a').all()) {
    expect(await link.getAttribute('href') ?? '').not.toMatch(/^javascript/)
    expect(await link.getAttribute('rel')).toContain('noopener')
  }
})

test('a link and code in an answer are what they should be', async () => {
  const answer = await answered('See [this](https://example.com/a?b=1&c).\n\n```go\nfunc main() {}\n```\n')
  expect(await answer.locator('a').getAttribute('href')).toBe('https://example.com/a?b=1&c')
  expect(await answer.locator('pre code').innerText()).toBe('func main() {}\n')
  await tab.page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await answer.getByRole('button', { name: 'Copy' }).click()
  await answer.getByText('Copied').waitFor()
  expect(await tab.page.evaluate(() => navigator.clipboard.readText())).toBe('func main() {}\n')
})

test.each([
  ['an unclosed fence', '```js\nlet a = 1\n\nno end', 'no end'],
  ['a huge table', '|a|b|\n|-|-|\n' + '|x|y|\n'.repeat(3000) + '\nafter', 'after'],
  ['deep quotes', '> '.repeat(3000) + 'deep', 'deep'],
  ['brackets without end', '['.repeat(19_000) + ' end', 'end'],
  ['stars without end', '*a'.repeat(9_000) + ' end', 'end'],
  ['a paragraph without end', 'word '.repeat(60_000) + 'end', 'end'],
  ['right-to-left and zero-width text', '\u202Eevil\u202C مرحبا \u200B\u200D\uFEFF end', 'end'],
])('%s is shown, and does not freeze the page', async (_, text, end) => {
  const started = Date.now()
  const answer = await answered(text)
  await expect.poll(() => answer.innerText().then((shown) => shown.includes(end))).toBe(true)
  expect(Date.now() - started).toBeLessThan(10_000)
})

test('colours of a terminal are colours, and HTML in a result is text', async () => {
  model.add({ calls: [{ tool: 'Read', arguments: { path: 'colour.txt' } }] }, { text: ['done'] })
  await say(tab.page, 'read')
  await tab.page.locator('.tool').getByText('Result', { exact: true }).click()
  const output = tab.page.locator('.tool .output')
  expect(await output.locator('.fg1').innerText()).toBe('red')
  expect(await output.innerText()).toContain('red plain <img src=x onerror="window.ran=1"> <b>bold</b>')
  expect(await output.locator('img, b').count()).toBe(0)
})

test('kinds of items and events from a newer server are named, and the rest goes on', async () => {
  await answered('Hello.')
  await tab.page.route(/\/items\?/, async (route) => {
    const page = await (await route.fetch()).json()
    page.data.push({ ...page.data[0], n: 900, kind: 'hologram', user_message: undefined, hologram: { shape: 'cube' } })
    await route.fulfill({ json: page })
  })
  await tab.page.route('**/events', async (route) => {
    await route.fulfill({ contentType: 'text/event-stream', body: 'id: 7000\nevent: moon.rose\ndata: {"type":"moon.rose","seq":7000}\n\nevent: odd\ndata: {"type":"odd"}\n\n' })
  }, { times: 1 })
  await tab.page.reload()
  await tab.page.getByText('Something newer than this page: hologram').waitFor()
  await tab.page.locator('.answer', { hasText: 'Hello.' }).waitFor()
  await tab.page.locator('.stream.live').waitFor()
})
