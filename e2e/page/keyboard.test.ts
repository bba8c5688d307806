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

test('everything is done by keyboard alone', async () => {
  const tab = await openTab(browser, server.url)
  const { page } = tab
  const { keyboard } = page
  const field = page.getByRole('textbox', { name: 'Message' })
  await expect.poll(() => field.evaluate((node) => node === document.activeElement)).toBe(true)
  await keyboard.type('first')
  await keyboard.press('Shift+Enter')
  await keyboard.type('of two lines')
  await keyboard.press('Enter')
  await page.locator('.answer[aria-busy=false]').waitFor()
  expect(await page.locator('.message.user').innerText()).toBe('first\nof two lines')
  await keyboard.type('/slow 3000')
  await keyboard.press('Enter')
  await page.getByRole('button', { name: 'Stop' }).waitFor()
  await keyboard.press('Escape')
  await keyboard.press('.')
  await page.locator('.end.cancelled').waitFor()
  await keyboard.press('r')
  await keyboard.type('Counted')
  await keyboard.press('Enter')
  await page.locator('button.title', { hasText: 'Counted' }).waitFor()
  await keyboard.press('n')
  await page.getByText('What shall be done?').waitFor()
  await expect.poll(() => field.evaluate((node) => node === document.activeElement)).toBe(true)
  await keyboard.type('second')
  await keyboard.press('Enter')
  await page.locator('.answer[aria-busy=false]').waitFor()
  await keyboard.press('Escape')
  await keyboard.press('j')
  await expect.poll(() => page.locator('.session.open .session-title').innerText()).toBe('Counted')
  await keyboard.press('k')
  await expect.poll(() => page.locator('.session.open .session-title').innerText()).toBe('second')
  await keyboard.press('?')
  await page.getByRole('dialog').waitFor()
  await keyboard.press('Escape')
  await expect.poll(() => page.getByRole('dialog').count()).toBe(0)
  await keyboard.press('m')
  await page.getByRole('heading', { name: 'Memory', exact: true }).waitFor()
  await keyboard.press('l')
  await page.getByRole('heading', { name: 'Limits', exact: true }).waitFor()
  expect(tab.wrong).toEqual([])
})

test('each thing that has the focus can be seen to have it', async () => {
  const { page } = await openTab(browser, server.url)
  await page.getByText('No model is configured').waitFor()
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur())
  const seen = new Set<string>()
  for (let i = 0; i < 25; i++) {
    await page.keyboard.press('Tab')
    const focus = await page.evaluate(() => {
      const node = document.activeElement as HTMLElement
      const style = getComputedStyle(node)
      const box = node.closest('.composer') && node.tagName === 'TEXTAREA' ? getComputedStyle(node.closest('.composer')!).borderColor : ''
      return { name: node.tagName + node.className + node.textContent?.slice(0, 20), ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2, box }
    })
    if (focus.name.startsWith('BODY')) continue
    seen.add(focus.name)
    expect(focus.ring || focus.box !== '', focus.name).toBe(true)
  }
  expect(seen.size).toBeGreaterThan(6)
})
