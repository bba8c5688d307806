import { readFileSync } from 'node:fs'
import { defineConfig, runnerImport, type Plugin } from 'vite'

const contract = new URL('../openapi.yaml', import.meta.url)

// The page /docs is made of the contract when it is built, and needs no script.
const docs: Plugin = {
  name: 'docs',
  transformIndexHtml: {
    order: 'pre',
    handler: async (html, { path }) => {
      if (path !== '/docs.html') return html
      const { module } = await runnerImport<typeof import('./src/docs/render')>('./src/docs/render.tsx', { configFile: false })
      return html.replace(/<!-- the contract.*-->/, () => module.render(readFileSync(contract, 'utf8')))
    },
  },
}

// The built pages are committed and embedded in the server, so a build must give the
// same bytes everywhere: no times, no paths, no maps.
export default defineConfig({
  base: '/',
  plugins: [docs],
  resolve: { conditions: ['workspace', 'browser', 'module'] }, // of this workspace's own packages
  build: {
    rolldownOptions: { input: ['index.html', 'docs.html'] },
    outDir: '../internal/web/dist',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    sourcemap: false,
    reportCompressedSize: false,
  },
})
