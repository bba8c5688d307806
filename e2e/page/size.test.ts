import { expect, test } from 'vitest'
import { launch } from '../lib/browser'
import { Server } from '../lib/server'

const maxBytes = 150 << 10 // of all files, as they are sent

test('the page is small, and starts at once', async () => {
  const browser = await launch()
  const server = await Server.start()
  const page = await browser.newPage()
  const session = await page.context().newCDPSession(page)
  await Promise.all([session.send('Network.enable'), session.send('Performance.enable')])
  let bytes = 0
  const files = new Set<string>()
  session.on('Network.responseReceived', ({ requestId, response }) => { if (!response.url.includes('/v1/')) files.add(requestId) })
  session.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => { if (files.has(requestId)) bytes += encodedDataLength })
  await page.goto(server.url)
  await page.getByText('No model is configured').waitFor()
  const { metrics } = await session.send('Performance.getMetrics')
  const script = metrics.find(({ name }) => name === 'ScriptDuration')!.value * 1000
  console.log(`the page: ${bytes} bytes are sent, ${Math.round(script)} ms of script until it is there`)
  expect(bytes).toBeGreaterThan(10_000)
  expect(bytes).toBeLessThanOrEqual(maxBytes)
  expect(script).toBeLessThan(1000)
  await browser.close()
  await server.close()
})
