import { defineConfig } from "vitest/config";

export default defineConfig({
  ssr: { resolve: { conditions: ["workspace", "node"] } }, // of this workspace's own packages
  test: {
    globalSetup: "./lib/build.ts",
    include: ["**/*.test.ts"],
    fileParallelism: false, // each file starts servers of its own: one after the other they are not in each other's way
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
