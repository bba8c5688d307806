import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { existsSync } from 'node:fs'

const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']

export function launch(): Promise<Browser> {
  const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
  if (!executablePath) throw new Error('there is no chromium: install it (Debian: apt-get install chromium)')
  return chromium.launch({ executablePath, args: flags })
}

// Tab is a page of the browser under watch: what it must never do is kept.
export interface Tab {
  page: Page
  wrong: string[] // errors of the console and of scripts, requests to elsewhere
}

export interface TabOptions extends BrowserContextOptions {
  mayFail?: RegExp // what the console may say, as the network is taken away
}

// openTab opens a page in a context of its own.
export async function openTab(browser: Browser, url: string, { mayFail, ...options }: TabOptions = {}): Promise<Tab> {
  const context = await browser.newContext({ viewport: { width: 1180, height: 760 }, reducedMotion: 'reduce', ...options })
  return watch(await context.newPage(), url, mayFail)
}

// watch opens an address in a page and keeps what is wrong.
export async function watch(page: Page, url: string, mayFail?: RegExp): Promise<Tab> {
  const wrong: string[] = []
  const keep = (text: string) => { if (!mayFail?.test(text)) wrong.push(text) }
  page.on('console', (message) => { if (message.type() === 'error' || message.type() === 'warning') keep(message.text()) })
  page.on('pageerror', (err) => keep(err.message))
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url())
    if (origin !== new URL(url).origin && protocol !== 'data:') wrong.push(`a request to ${request.url()}`)
  })
  page.setDefaultTimeout(15_000)
  await page.goto(url)
  return { page, wrong }
}

// say writes a message and sends it.
export async function say(page: Page, text: string) {
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.keyboard.press('Enter')
}
