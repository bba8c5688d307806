import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'vitest'
import { launch, openTab, say } from '../lib/browser'
import { root, Server } from '../lib/server'

const images = join(root, 'docs/images')

test('pictures of the page', async () => {
  const browser = await launch()
  const server = await Server.start({ manifest: '[memory]\nenabled = true\nconsolidation_threshold_records = 1\n' })
  for (let year = 1871; year < 1880; year++) {
    const folder = join(server.project, `letters-${year}`)
    mkdirSync(folder)
    for (let n = 1; n <= 110; n++) writeFileSync(join(folder, `${String(n).padStart(4, '0')}-from-the-captain.txt`), 'The glass is falling.\n')
  }
  const size = { width: 1120, height: 720 }
  const { page } = await openTab(browser, server.url, { viewport: size, colorScheme: 'light' })
  await page.getByText('No model is configured').waitFor()
  await page.screenshot({ path: join(images, 'welcome.png') })
  await say(page, 'I prefer short answers')
  await page.getByText('Later sessions of this project').first().waitFor()
  await page.goto(`${server.url}/#/`)
  await say(page, 'we decided to cut results because a long one can end a session')
  await page.getByText('Later sessions of this project').first().waitFor()
  await page.goto(`${server.url}/#/`)
  await say(page, '/think what the captain wrote')
  await page.getByText('I have thought about it').first().waitFor()
  await say(page, 'list the files')
  await page.locator('.cut').waitFor()
  await page.locator('.waiting').waitFor({ state: 'detached' })
  await page.locator('.tool').scrollIntoViewIfNeeded()
  await page.mouse.move(700, 300)
  await page.mouse.wheel(0, -330)
  await page.getByRole('button', { name: 'To the end' }).waitFor()
  await page.screenshot({ path: join(images, 'cut.png') })

  const dark = await openTab(browser, page.url(), { viewport: { width: 375, height: 720 }, colorScheme: 'dark' })
  await dark.page.locator('.cut').waitFor()
  await dark.page.screenshot({ path: join(images, 'phone.png') })
  await browser.close()
  await server.close()
})
