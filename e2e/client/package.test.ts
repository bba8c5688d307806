import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build, type Rollup } from "vite";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root } from "../lib/server";

const client = join(root, "clients/typescript");
let folder: string;
let files: string[];

/** Packs the client and unpacks it where a program would have it. */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "loadline-pack-"));
  const packed = JSON.parse(execFileSync("npm", ["pack", "--json", "--pack-destination", folder], { cwd: client, encoding: "utf8" }));
  files = packed[0].files.map((file: { path: string }) => file.path);
  execFileSync("mkdir", ["-p", join(folder, "node_modules/loadline")]);
  execFileSync("tar", ["-xzf", join(folder, packed[0].filename), "--strip-components=1", "-C", join(folder, "node_modules/loadline")]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the package holds its code, its types, what it is and its licence", () => {
  const sources = readdirSync(join(client, "src")).map((name) => name.replace(/\.ts$/, ""));
  const want = ["LICENSE", "README.md", "package.json", ...sources.flatMap((name) => [`dist/${name}.d.ts`, `dist/${name}.js`])];
  expect(files.sort()).toEqual(want.sort());
});

test("it has at most 5 KB, compressed and without types", async () => {
  const entry = join(folder, "node_modules/loadline/dist/index.js");
  const output = (await build({
    configFile: false, logLevel: "silent",
    build: { write: false, minify: true, target: "es2022", lib: { entry, formats: ["es"], fileName: "client" } },
  })) as Rollup.RollupOutput[];
  const code = output[0]!.output[0].code;
  const bytes = gzipSync(code, { level: 9 }).length;
  console.log(`the typed client: ${code.length} bytes, ${bytes} compressed`);
  expect(bytes).toBeLessThanOrEqual(5 * 1024);
});

test("Node runs it, and its types are checked with every way of finding modules", () => {
  writeFileSync(join(folder, "package.json"), `{"type":"module"}`);
  writeFileSync(join(folder, "run.mjs"), `import { Loadline } from "loadline"; console.log(typeof new Loadline().follow)`);
  expect(execFileSync("node", ["run.mjs"], { cwd: folder, encoding: "utf8" })).toBe("function\n");
  writeFileSync(join(folder, "use.ts"), `
import { Loadline, type Session } from "loadline";
const loadline = new Loadline();
export const made: Promise<Session> = loadline.post("/v1/sessions", { body: { title: "typed" } });
// @ts-expect-error: there is no such route
void loadline.get("/v1/nothing");
// @ts-expect-error: the session is missing
void loadline.get("/v1/sessions/{session_id}");
// @ts-expect-error: the body is missing
void loadline.post("/v1/sessions/{session_id}/turns", { params: { session_id: "ses_1" } });
// @ts-expect-error: a title is a string
void loadline.post("/v1/sessions", { body: { title: 1 } });
`);
  for (const [module, resolution] of [["NodeNext", "NodeNext"], ["ESNext", "Bundler"]] as const) {
    tsc("use.ts", "--module", module, "--moduleResolution", resolution);
  }
});

test("the example in React is typed as a page would see it", () => {
  for (const name of ["react", "react-dom", "@types", "csstype"]) symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  const text = readFileSync(join(client, "examples/react.tsx"), "utf8");
  expect(text.split("\n").length).toBeLessThan(70);
  writeFileSync(join(folder, "react.tsx"), text);
  tsc("react.tsx", "--module", "ESNext", "--moduleResolution", "Bundler", "--jsx", "react-jsx");
});

function tsc(file: string, ...options: string[]): void {
  const common = ["--noEmit", "--strict", "--target", "ES2022", "--lib", "ES2023,DOM,DOM.Iterable,DOM.AsyncIterable"];
  try {
    execFileSync(join(root, "node_modules/.bin/tsc"), [file, ...common, ...options], { cwd: folder, encoding: "utf8" });
  } catch (err) {
    throw new Error((err as { stdout: string }).stdout);
  }
}
