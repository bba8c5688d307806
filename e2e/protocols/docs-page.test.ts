import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer as createSite } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { createServer, type ViteDevServer } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { launch, say, watch } from "../lib/browser";
import { blocks } from "../lib/docs";
import { Server, root } from "../lib/server";

let browser: Browser;
let server: Server;
let folder: string; // below the packages' own, so that they are found
let vite: ViteDevServer | undefined;
const site = createSite((_, response) => response.setHeader("Content-Type", "text/html").end(blocks("html", server.url)[0])); // of another origin

beforeAll(async () => {
  browser = await launch();
  await once(site.listen(0, "127.0.0.1"), "listening");
  server = await Server.start({ server: `allowed_origins = ["${originOf()}"]` });
  writeFileSync(join(server.project, "letter.txt"), "The glass is falling.\n");
  mkdirSync(join(root, ".cache"), { recursive: true });
  folder = mkdtempSync(join(root, ".cache/docs-"));
});
afterAll(async () => {
  await browser?.close();
  await vite?.close();
  await server?.close();
  site.closeAllConnections();
  site.close();
  rmSync(folder, { recursive: true, force: true });
});

function originOf(): string {
  return `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
}

/** A fresh app of Vite with the files of the page in it, and the newest packages. */
function makeApp() {
  const [main, ...more] = blocks("tsx", server.url);
  const [config, ...others] = blocks("ts", server.url);
  expect([...more, ...others]).toEqual([]);
  mkdirSync(join(folder, "src"));
  mkdirSync(join(folder, "node_modules/@ai-sdk"), { recursive: true });
  symlinkSync(join(root, "node_modules/ai7"), join(folder, "node_modules/ai"));
  symlinkSync(join(root, "node_modules/ai7-react"), join(folder, "node_modules/@ai-sdk/react"));
  writeFileSync(join(folder, "package.json"), `{ "type": "module" }`);
  writeFileSync(join(folder, "src/main.tsx"), main!);
  writeFileSync(join(folder, "vite.config.ts"), config!);
  writeFileSync(join(folder, "index.html"), `<!doctype html><link rel="icon" href="data:,"><div id="root"></div><script type="module" src="/src/main.tsx"></script>`);
}

test("the app for the AI SDK has no mistake in its types, and chats", async () => {
  makeApp();
  const options = "--noEmit --strict --target ES2022 --module ESNext --moduleResolution Bundler --jsx react-jsx --skipLibCheck --types vite/client";
  execFileSync(join(root, "node_modules/.bin/tsc"), ["src/main.tsx", "vite.config.ts", ...options.split(" ")], { cwd: folder, stdio: "inherit" }); // it prints what is wrong
  vite = await createServer({ root: folder, configFile: join(folder, "vite.config.ts"), logLevel: "error", server: { host: "127.0.0.1", port: 0 } });
  await vite.listen();
  const { page, wrong } = await watch(await browser.newPage(), vite.resolvedUrls!.local[0]!);
  await page.getByText("ready").waitFor();
  await say(page, "list the files");
  await page.getByText("Glob output-available").waitFor();
  await page.getByText("ready").waitFor();
  expect(await page.locator(".assistant span").last().textContent()).toContain("letter.txt");
  expect(page.url()).toMatch(/session=ses_/);
  expect(wrong).toEqual([]);
});

test("the page with EventSource, on an origin of its own, shows an answer", async () => {
  expect(blocks("html", server.url).length).toBe(1);
  const page = await browser.newPage();
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(error.message));
  await page.goto(originOf());
  await page.waitForFunction(() => document.getElementById("answer")!.textContent!.endsWith("\n"), undefined, { timeout: 15_000 });
  expect((await page.locator("#answer").textContent())!.trim()).not.toBe("");
  expect(wrong).toEqual([]);
});
