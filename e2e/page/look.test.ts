import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { launch, openTab, say } from '../lib/browser'
import { Server } from '../lib/server'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

let browser: Browser
let server: Server

beforeAll(async () => {
  browser = await launch()
  server = await Server.start({
    manifest: '[memory]\nenabled = true\nextract_threshold_bytes = 1024\nconsolidation_threshold_records = 1\n',
  })
})
afterAll(async () => {
  await browser.close()
  await server.close()
})

// violations are what axe finds, in words.
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe)
  return page.evaluate(async () => {
    const found = await (window as unknown as { axe: { run: () => Promise<{ violations: { id: string; nodes: { html: string; failureSummary: string }[] }[] }> } }).axe.run()
    return found.violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => `${node.html}: ${node.failureSummary}`).join(' | ')}`)
  })
}

// fits tells whether nothing is wider than the window, and nothing sticks out of the
// place where messages are written.
const fits = (page: Page) => page.evaluate(() => {
  const composer = document.querySelector('.composer')
  const edge = composer?.getBoundingClientRect()
  const inside = (part: Element) => {
    const { left, right, bottom } = part.getBoundingClientRect()
    return left >= edge!.left && right <= edge!.right && bottom <= edge!.bottom
  }
  return document.documentElement.scrollWidth <= innerWidth && [...(composer?.querySelectorAll('button, textarea, label') ?? [])].every(inside)
})

describe.each([
  ['desktop', { width: 1180, height: 760 }],
  ['phone', { width: 375, height: 720 }],
] as const)('on a %s', (size, viewport) => {
  test.each(['light', 'dark'] as const)('every view can be read in %s', async (colorScheme) => {
    const tab = await openTab(browser, server.url, { viewport, colorScheme, hasTouch: size === 'phone' })
    const { page } = tab
    const check = async (view: string) => {
      expect(await violations(page), view).toEqual([])
      expect(await fits(page), view).toBe(true)
    }
    await page.getByText('No model is configured').waitFor()
    await check('welcome')
    await page.getByRole('button', { name: 'A result that is far too long' }).click()
    await page.locator('.cut').waitFor()
    await page.locator('.answer[aria-busy=false]').last().waitFor()
    for (const fold of await page.locator('.tool .fold summary').all()) await fold.click()
    await page.getByRole('button', { name: 'Open the whole output' }).click()
    await page.locator('.whole .output').waitFor()
    await check('cut result')
    await say(page, 'I prefer short answers')
    await page.locator('.answer', { hasText: 'The person prefers short answers.' }).waitFor()
    await say(page, '/slow 2000')
    await page.getByRole('button', { name: 'Stop' }).waitFor()
    await say(page, 'wait for it')
    await page.locator('.queue li').first().waitFor()
    await check('running')
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.locator('.end.cancelled').waitFor()
    await check('stopped')
    for (const view of ['Memory', 'Limits']) {
      if (size === 'phone') {
        await page.getByRole('button', { name: 'Sessions', exact: true }).click()
        if (view === 'Memory') await check('sessions')
      }
      await page.getByRole('link', { name: view }).click()
      await page.getByRole('heading', { name: view, exact: true }).waitFor()
      await page.waitForLoadState('networkidle')
      await check(view)
    }
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur())
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    await check('help')
    expect(tab.wrong).toEqual([])
    await page.context().close()
  })
})
