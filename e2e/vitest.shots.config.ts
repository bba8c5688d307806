import { defineConfig } from 'vitest/config'

// The pictures of the documentation are made like a test, but are none.
export default defineConfig({
  test: { globalSetup: './lib/build.ts', include: ['shots/*.ts'], testTimeout: 60_000 },
})
