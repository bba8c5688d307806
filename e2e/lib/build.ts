import { execFileSync } from "node:child_process";
import { root } from "./server";

// Builds the server once, before the first test.
export default function build() {
  execFileSync("make", ["build"], { cwd: root, stdio: "inherit" });
}
