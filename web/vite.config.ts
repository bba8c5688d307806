import { defineConfig } from 'vite'

// The built page is committed and embedded in the server, so a build must give the
// same bytes everywhere: no times, no paths, no maps.
export default defineConfig({
  base: '/',
  resolve: { conditions: ['workspace', 'browser', 'module'] }, // of this workspace's own packages
  build: {
    outDir: '../internal/web/dist',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    sourcemap: false,
    reportCompressedSize: false,
  },
})
