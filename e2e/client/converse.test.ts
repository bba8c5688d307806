import { Loadline, type Conversation } from "loadline";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { gate, Model } from "../lib/model";
import { Server } from "../lib/server";

let model: Model;
let server: Server;
let loadline: Loadline;

beforeAll(async () => {
  model = await Model.start();
  server = await Server.start({ model: model.url });
  loadline = new Loadline({ baseURL: server.url });
});
afterAll(async () => {
  await server.close();
  await model.close();
});

/** Reads a conversation until it is as wanted, or until its last turn has ended. */
async function until(session: string, wanted: (conversation: Conversation) => unknown, live?: () => void): Promise<Conversation> {
  const leave = new AbortController();
  try {
    for await (const conversation of loadline.converse(session, { signal: leave.signal, onState: live })) {
      if (wanted(conversation) || [...conversation.turns.values()].every((turn) => turn.ended_at)) return conversation;
    }
    throw new Error("the conversation has ended");
  } finally {
    leave.abort();
  }
}

const last = (conversation: Conversation) => conversation.messages.at(-1)?.text;

test("who comes in mid-answer sees what was written before a turn was queued", async () => {
  const held = gate(2);
  model.add({ text: ["Grüße, ", "und ", "Ende."], gate: held.gate }, { text: ["zwei"] });
  const session = await server.session();
  await loadline.send(session, "one");
  await until(session, (conversation) => last(conversation) === "Grüße, und ");
  await loadline.send(session, "two");
  const late = until(session, (conversation) => conversation.messages.length === 2, held.open);
  expect(last(await late)).toMatch(/^Grüße, und /);
  expect((await late).queue).toHaveLength(1);
  await server.settled(session);
});

test("who comes while tools run sees the results that are final", async () => {
  const slow = `until [ -e ${join(server.project, "go")} ]; do sleep 0.05; done; echo slow`;
  const calls = [slow, "echo fast", "echo faster"].map((command) => ({ tool: "Bash", arguments: { command } }));
  model.add({ calls }, { text: ["done"] });
  const session = await server.session();
  await loadline.send(session, "run them");
  const results = (conversation: Conversation) => conversation.messages.filter((message) => message.kind === "tool_result").length;
  await until(session, (conversation) => results(conversation) === 2);
  const seen = await until(session, (conversation) => results(conversation) > 0);
  expect(seen.messages.map((message) => message.n)).toEqual([1, 2, 3, 4, 6, 7]);
  writeFileSync(join(server.project, "go"), "");
  const whole = await until(session, () => false);
  expect(whole.messages.map((message) => message.n)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
});
