import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Options {
  /** Where the model is asked: the URL of a Model. Without it the demo model answers. */
  model?: string;
  /** More tables of the manifest. */
  manifest?: string;
  /** Lines of the table [server], beside listen. */
  server?: string;
}

/** The real server, in a process and a folder of its own. */
export class Server {
  /** http://127.0.0.1:PORT, the same after a restart. */
  url = "";
  /** The folder of the project `default`, which may be written. */
  readonly project: string;
  /** What it has logged, for a test that fails. */
  log = "";
  private readonly folder = mkdtempSync(join(tmpdir(), "loadline-e2e-"));
  private child?: ChildProcess;

  private constructor(private readonly options: Options) {
    this.project = mkdtempSync(join(this.folder, "project-"));
  }

  static async start(options: Options = {}): Promise<Server> {
    const server = new Server(options);
    await server.boot();
    return server;
  }

  /** Kills it, as a power cut would. */
  async kill(): Promise<void> {
    const child = this.child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }

  /** Starts it again after a kill, on the same port and data. */
  async boot(): Promise<void> {
    const file = join(this.folder, "loadline.toml");
    writeFileSync(file, this.manifest());
    const child = spawn(join(root, "bin/server"), ["serve", "--manifest", file], { stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    child.stderr.on("data", (text) => (this.log += text));
    for await (const line of createInterface({ input: child.stdout })) {
      const found = line.match(/ listens on (\S+)/);
      if (found) {
        this.url = found[1]!;
        child.stdout.resume();
        return;
      }
    }
    throw new Error(`the server does not start: ${this.log}`);
  }

  /** Ends it, and removes what it has stored. */
  async close(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Sends JSON and returns the JSON of the answer, which must be good. */
  async json<T = any>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(this.url + path, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === "" ? (undefined as T) : JSON.parse(text);
  }

  /** Makes a session and returns its id. */
  async session(): Promise<string> {
    return (await this.json("POST", "/v1/sessions", {})).id;
  }

  /** The items of a session. */
  async items(session: string): Promise<any[]> {
    return (await this.json("GET", `/v1/sessions/${session}/items?limit=200`)).data;
  }

  /** The turns of a session. */
  async turns(session: string): Promise<any[]> {
    return (await this.json("GET", `/v1/sessions/${session}/turns?limit=200`)).data;
  }

  /** Waits until nothing runs and nothing waits in a session, and returns its turns. */
  async settled(session: string): Promise<any[]> {
    for (;;) {
      const turns = await this.turns(session);
      const open = turns.find((turn) => turn.state === "queued" || turn.state === "running");
      if (!open) return turns;
      const stream = await fetch(`${this.url}/v1/sessions/${session}/events`);
      for await (const line of lines(stream)) {
        const event = line.startsWith("data: ") ? JSON.parse(line.slice(6)) : {};
        if (event.turn_id === open.id && event.turn?.ended_at) break;
      }
    }
  }

  private manifest(): string {
    const { model, manifest = "", server = "" } = this.options;
    const listen = this.url === "" ? "127.0.0.1:0" : new URL(this.url).host;
    const asked = model ? `[model]\nprovider = "openai"\nname = "scripted"\nbase_url = "${model}"\n` : "";
    return `[server]
listen = "${listen}"
${server}
[store]
dir = "data"
${asked}
[projects.default]
root = "${this.project}"
permission = "write"
[tools.Bash]
enabled = true
${manifest}
`;
  }
}

/** The lines of an answer, as they come. */
export async function* lines(answer: Response): AsyncGenerator<string> {
  let rest = "";
  for await (const text of answer.body!.pipeThrough(new TextDecoderStream())) {
    const whole = (rest + text).split("\n");
    rest = whole.pop()!;
    yield* whole;
  }
}
