import { connect } from "node:net";
import { Loadline, Problem, type Followed } from "loadline";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { hurry } from "../lib/hurry";
import { gate, Model } from "../lib/model";
import { Proxy } from "../lib/proxy";
import { Server } from "../lib/server";

let model: Model;
let server: Server;
let direct: Loadline;

beforeAll(async () => {
  model = await Model.start();
  server = await Server.start({ model: model.url });
  direct = new Loadline({ baseURL: server.url });
});
afterAll(async () => {
  await server.close();
  await model.close();
});

/** What a reader has put together: durable events, and the text of each item's deltas. */
class Heard {
  readonly durable: string[] = [];
  readonly texts: Record<number, string> = {};

  take({ event }: Followed): void {
    if ("seq" in event) this.durable.push(`${event.seq} ${event.type}`);
    if (event.type !== "item.delta") return;
    const had = this.texts[event.item_n] ?? "";
    expect(event.at_byte, "no gap, no double").toBe(Buffer.byteLength(had));
    this.texts[event.item_n] = had + event.text;
  }
}

const texts = ["Grüße ", "an ", "die ", "🦆 ", "und ", "日本."];

test("a stream that is cut after any number of bytes is whole", async () => {
  const { gate: held, open } = gate(100);
  model.add({ reasoning: ["Hm, ", "wie?"], text: texts, gate: held });
  const session = (await direct.post("/v1/sessions", { body: {} })).id;
  await direct.send(session, "Grüße");

  const whole = await transcript(direct, session);
  expect(Object.values(whole.texts).join("|")).toBe("Hm, wie?|" + texts.join(""));
  const bytes = await size(session);
  onTestFinished(hurry());
  let next = 1;
  const work = async () => {
    for (let after = next++; after < bytes; after = next++) {
      const proxy = await Proxy.before(server.url);
      proxy.cutAfter = after;
      const heard = await transcript(new Loadline({ baseURL: proxy.url }), session, () => (proxy.cutAfter = Infinity));
      expect(heard, `cut after ${after} bytes`).toEqual(whole);
      expect(proxy.cuts, `cut after ${after} bytes`).toBe(1);
      await proxy.close();
    }
  };
  try {
    await Promise.all(Array.from({ length: 8 }, work));
  } finally {
    open();
  }
  expect(next).toBeGreaterThan(1000);
  await server.settled(session);
}, 180_000);

/** Reads a session's stream up to the last piece of its running text. */
async function transcript(client: Loadline, session: string, lost?: () => void): Promise<Heard> {
  const heard = new Heard();
  const leave = new AbortController();
  const onState = (state: string) => state === "reconnecting" && lost?.();
  for await (const followed of client.follow(session, { signal: leave.signal, onState })) {
    heard.take(followed);
    if (Object.values(heard.texts).at(-1)?.endsWith("日本.")) break;
  }
  leave.abort();
  return heard;
}

/** How many bytes the stream has up to there, the answer's head and all. */
async function size(session: string): Promise<number> {
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  socket.write(`GET /v1/sessions/${session}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  let bytes = Buffer.alloc(0);
  for await (const piece of socket) {
    bytes = Buffer.concat([bytes, piece]);
    if (bytes.includes("日本.")) break;
  }
  return bytes.length;
}

test("a server that is killed in mid-answer is followed when it is back", async () => {
  const first = gate(2);
  model.add({ text: ["I was ", "about to ", "say"], gate: first.gate }, { text: ["I was ", "about to ", "say it."] });
  const session = (await direct.post("/v1/sessions", { body: {} })).id;
  const states: string[] = [];
  const leave = new AbortController();
  await direct.send(session, "say it");
  let killed = false;
  for await (const conversation of direct.converse(session, { signal: leave.signal, onState: (state) => states.push(state) })) {
    const last = conversation.messages.at(-1)!;
    if (!killed && last.text.includes("about")) {
      killed = true;
      await server.kill();
      first.open();
      await server.boot();
    }
    if (conversation.session && [...conversation.turns.values()].every((turn) => turn.ended_at)) {
      expect(conversation.messages.map((message) => message.kind)).toEqual(["user_message", "assistant_message"]);
      expect(last.item).toMatchObject({ assistant_message: { text: "I was about to say it." } });
      break;
    }
  }
  leave.abort();
  expect(states).toContain("reconnecting");
  expect(states.at(-1)).toBe("live");
});

test("the stream of a deleted session ends with its problem", async () => {
  const session = (await direct.post("/v1/sessions", { body: {} })).id;
  const read = (async () => {
    for await (const _ of direct.follow(session, { onState: (state) => state === "live" && void direct.delete("/v1/sessions/{session_id}", { params: { session_id: session } }) }));
  })();
  await expect(read).rejects.toMatchObject({ name: "Problem", status: 404 });
  expect(await read.catch((err: unknown) => err)).toBeInstanceOf(Problem);
});
