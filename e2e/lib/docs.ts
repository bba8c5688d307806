import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./server";

const page = readFileSync(join(root, "docs/frontends.md"), "utf8");

/** The fenced blocks of docs/frontends.md in a language, which ask this server. */
export function blocks(language: string, server: string): string[] {
  const found = [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].map((match) => match[1]!);
  return found.map((text) => text.replaceAll("http://127.0.0.1:8080", server));
}
