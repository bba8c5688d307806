import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { blocks } from "../lib/docs";
import { Server, root } from "../lib/server";

const written = "http://127.0.0.1:8080";

let server: Server;
let folder: string;

beforeAll(async () => {
  execFileSync("npm", ["run", "--silent", "build", "-w", "clients/typescript"], { cwd: root }); // one of them uses it
  server = await Server.start();
  folder = mkdtempSync(join(root, "node_modules", ".docs-")); // there packages are found
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await server.close();
});

test("docs/frontends.md has programs", () => expect(blocks("js", written).length).toBeGreaterThan(4));

test.each(blocks("js", written).map((program, i) => [i + 1, program] as const))("program %i of docs/frontends.md prints an answer", async (i, program) => {
  expect(program).toContain(written);
  const file = join(folder, `${i}.mjs`);
  writeFileSync(file, program.replaceAll(written, server.url));
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], { timeout: 30_000 });
  expect(stderr).toBe("");
  expect(stdout.trim()).not.toBe("");
  expect(stdout).not.toContain("undefined");
});
