import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Server, root } from "../lib/server";

const text = readFileSync(join(root, "docs/frontends.md"), "utf8");
const programs = [...text.matchAll(/^```js\n(.*?)^```$/gms)].map((match) => match[1]!);

let server: Server;
let folder: string;

beforeAll(async () => {
  server = await Server.start();
  folder = mkdtempSync(join(root, "node_modules", ".docs-")); // there packages are found
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await server.close();
});

test("docs/frontends.md has programs", () => expect(programs.length).toBeGreaterThan(3));

test.each(programs.map((program, i) => [i + 1, program] as const))("program %i of docs/frontends.md prints an answer", async (i, program) => {
  expect(program).toContain("http://127.0.0.1:8080");
  const file = join(folder, `${i}.mjs`);
  writeFileSync(file, program.replaceAll("http://127.0.0.1:8080", server.url));
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], { timeout: 30_000 });
  expect(stderr).toBe("");
  expect(stdout.trim()).not.toBe("");
  expect(stdout).not.toContain("undefined");
});
