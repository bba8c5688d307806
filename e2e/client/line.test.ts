import { Loadline, type State } from "loadline";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/** A line to a server that a test holds in its hand. */
class Line {
  /** The ids that the client came with, and when, in ms. */
  readonly asked: [id: string | null, at: number][] = [];
  readonly states: State[] = [];
  readonly seen: string[] = [];
  readonly leave = new AbortController();
  /** Answers a request; throws where there is no network. */
  answer: (signal: AbortSignal) => Response = (signal) => this.open(signal);
  private readonly start = Date.now();
  private writer?: ReadableStreamDefaultController<Uint8Array>;
  readonly done: Promise<void>;

  constructor(after?: string, answer?: (signal: AbortSignal) => Response) {
    if (answer) this.answer = answer;
    const loadline = new Loadline({ baseURL: "http://127.0.0.1", fetch: async (address, init) => {
      if (!String(address).endsWith("/events")) return Response.json({ last_seq: 41 });
      this.asked.push([new Headers(init!.headers).get("Last-Event-ID"), Date.now() - this.start]);
      return this.answer(init!.signal!);
    } });
    this.done = (async () => {
      for await (const { id } of loadline.follow("ses_1", { after, signal: this.leave.signal, onState: (state) => this.states.push(state) })) this.seen.push(id);
    })();
    this.done.catch(() => {});
  }

  /** A stream that write and drop work on. */
  open(signal: AbortSignal): Response {
    const body = new ReadableStream<Uint8Array>({ start: (writer) => void (this.writer = writer) });
    signal.addEventListener("abort", () => this.drop());
    return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  }

  async write(text: string): Promise<void> {
    this.writer!.enqueue(new TextEncoder().encode(text));
    await vi.advanceTimersByTimeAsync(0);
  }

  drop(): void {
    try {
      this.writer?.error(new TypeError("terminated"));
    } catch {
      // it is closed
    }
  }
}

const event = (id: string) => `id: ${id}\nevent: memory.extract\ndata: {"type":"memory.extract"}\n\n`;
const noNetwork = () => { throw new TypeError("fetch failed") };

test("a line without a byte in 40 s is dropped, and one with comments is not", async () => {
  const line = new Line();
  await vi.advanceTimersByTimeAsync(0);
  await line.write(event("7"));
  for (let i = 0; i < 10; i++) {
    await vi.advanceTimersByTimeAsync(39_000);
    await line.write(": \n\n");
  }
  expect(line.asked).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(39_999);
  expect(line.asked).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(400);
  expect(line.asked.map(([id]) => id)).toEqual(["0", "7"]);
  expect(line.states).toEqual(["live", "reconnecting", "reconnecting", "live"]);
  line.leave.abort();
  await line.done;
});

test("the waits between tries grow up to 15 s, and begin anew after an event", async () => {
  const line = new Line("0", noNetwork);
  await vi.advanceTimersByTimeAsync(180_000);
  const waits = line.asked.slice(1).map(([, at], i) => at - line.asked[i]![1]);
  for (const [i, wait] of waits.entries()) {
    const longest = Math.min(250 * 2 ** i, 15_000);
    expect(wait).toBeGreaterThanOrEqual(longest / 2);
    expect(wait).toBeLessThanOrEqual(longest + 1);
  }
  expect(waits.length).toBeGreaterThan(15);
  line.answer = (signal) => line.open(signal);
  await vi.advanceTimersByTimeAsync(15_001);
  await line.write(event("8"));
  const tries = line.asked.length;
  line.drop();
  await vi.advanceTimersByTimeAsync(251);
  expect(line.asked).toHaveLength(tries + 1);
  line.leave.abort();
  await line.done;
});

test("a browser that is online again tries at once", async () => {
  const browser = new EventTarget();
  const navigator = { onLine: true };
  vi.stubGlobal("navigator", navigator);
  vi.stubGlobal("addEventListener", browser.addEventListener.bind(browser));
  vi.stubGlobal("removeEventListener", browser.removeEventListener.bind(browser));
  const line = new Line();
  await vi.advanceTimersByTimeAsync(0);
  navigator.onLine = false;
  line.answer = noNetwork;
  line.drop();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(line.states.at(-1)).toBe("offline");
  navigator.onLine = true;
  line.answer = (signal) => line.open(signal);
  browser.dispatchEvent(new Event("online"));
  await vi.advanceTimersByTimeAsync(0);
  expect(line.states.slice(-2)).toEqual(["reconnecting", "live"]);
  line.leave.abort();
  await line.done;
});

test("now is the same moment when the first line brings nothing", async () => {
  const line = new Line("now");
  await vi.advanceTimersByTimeAsync(0);
  line.drop();
  await vi.advanceTimersByTimeAsync(300);
  expect(line.asked.map(([id]) => id)).toEqual(["41.0", "41.0"]);
  line.leave.abort();
  await line.done;
});

test("after a reset the stream is resumed from where it was reset to", async () => {
  const line = new Line("99.5");
  await vi.advanceTimersByTimeAsync(0);
  await line.write(`event: stream.reset\ndata: {"type":"stream.reset","from":0}\n\n`);
  line.drop();
  await vi.advanceTimersByTimeAsync(300);
  expect(line.asked.map(([id]) => id)).toEqual(["99.5", "0.0"]);
  line.leave.abort();
  await line.done;
});

test.each([[404, "throws"], [401, "throws"], [400, "throws"], [429, "tries again"], [408, "tries again"], [502, "tries again"], [503, "tries again"]])("an answer %i %s", async (status, does) => {
  const problem = { code: "some", status, title: "Some", type: "about:blank", detail: "" };
  const line = new Line("0", () => Response.json(problem, { status }));
  await vi.advanceTimersByTimeAsync(1000);
  if (does === "throws") return expect(line.done).rejects.toMatchObject({ status, code: "some" });
  expect(line.asked.length).toBeGreaterThan(1);
  line.leave.abort();
  await line.done;
});

test("who leaves while the line is down waits for nothing", async () => {
  const line = new Line("0", noNetwork);
  await vi.advanceTimersByTimeAsync(60_000);
  line.leave.abort();
  await line.done;
  expect(vi.getTimerCount()).toBe(0);
});
