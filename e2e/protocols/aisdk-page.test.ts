import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium, type Browser } from "playwright-core";
import { build, preview, type PreviewServer } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { gate, Model } from "../lib/model";
import { Server } from "../lib/server";

// A page of a few lines with useChat, built by Vite, which passes /v1 on to the server.
let model: Model;
let server: Server;
let site: PreviewServer;
let browser: Browser;
const built = mkdtempSync(join(tmpdir(), "loadline-page-"));

beforeAll(async () => {
  model = await Model.start();
  server = await Server.start({ model: model.url });
  const root = fileURLToPath(new URL("../apps/aisdk", import.meta.url));
  const shared = { configFile: false as const, root, logLevel: "error" as const, build: { outDir: built, emptyOutDir: true } };
  await build(shared);
  site = await preview({ ...shared, preview: { host: "127.0.0.1", port: 0, proxy: { "/v1": server.url } } });
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"] });
});

afterAll(async () => {
  await browser?.close();
  await site?.close();
  await server?.close();
  await model?.close();
  rmSync(built, { recursive: true, force: true });
});

test("a page chats, is loaded again in mid-answer, and goes on", async () => {
  const { gate: held, open: release } = gate(2);
  model.add({ calls: [{ tool: "Glob", arguments: { pattern: "*" } }] }, { text: ["one ", "two ", "three"], gate: held }, { status: 401, message: "no" });
  const session = await server.session();
  const page = await browser.newPage();
  page.setDefaultTimeout(20_000);
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(error.message));
  await page.goto(`${site.resolvedUrls!.local[0]}?session=${session}`);
  const answer = page.locator(".assistant span");
  await page.getByLabel("Message").fill("count");
  await page.keyboard.press("Enter");
  await page.getByText("Glob output-available").waitFor();
  await answer.getByText("one two", { exact: true }).waitFor();
  await page.reload();
  await answer.getByText("one two", { exact: true }).waitFor();
  release();
  await answer.getByText("one two three", { exact: true }).waitFor();
  await page.getByText("ready").waitFor();
  expect(await page.locator(".assistant").count()).toBe(1);
  await page.getByLabel("Message").fill("again");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  const turns = await server.settled(session);
  expect(await page.getByRole("alert").textContent()).toBe(turns[1].error.detail);
  expect(turns.map((turn) => turn.state)).toEqual(["completed", "failed"]);
  expect([wrong, model.problems]).toEqual([[], []]);
});

test("a page of another origin chats, if the manifest allows that", async () => {
  const origin = new URL(site.resolvedUrls!.local[0]!).origin;
  const other = await Server.start({ model: model.url, server: `allowed_origins = ["${origin}"]` });
  try {
    model.add({ text: ["from afar"] });
    const page = await browser.newPage();
    page.setDefaultTimeout(20_000);
    for (const [at, allowed] of [[other, true], [server, false]] as const) {
      await page.goto(`${origin}/?server=${encodeURIComponent(at.url)}&session=${await at.session()}`);
      await page.getByText(allowed ? "ready" : "error").waitFor();
      await page.getByLabel("Message").fill("hi");
      await page.keyboard.press("Enter");
      if (allowed) await page.locator(".assistant span").getByText("from afar", { exact: true }).waitFor();
      else await page.getByRole("alert").getByText("Failed to fetch").waitFor();
    }
    expect(model.problems).toEqual([]);
  } finally {
    await other.close();
  }
});
