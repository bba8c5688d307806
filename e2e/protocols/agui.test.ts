import { EventType, HttpAgent, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { CopilotKitCore } from "@copilotkit/core";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { Model, gate } from "../lib/model";
import { Server, lines } from "../lib/server";

let model: Model;
let server: Server;
vi.spyOn(console, "error").mockImplementation(() => undefined); // it tells there what it throws, too
const warnings = vi.spyOn(console, "warn"); // the client warns of whatever it has to strip

beforeAll(async () => {
  model = await Model.start();
  server = await Server.start({ model: model.url });
});
afterAll(async () => {
  await server.close();
  await model.close();
});
afterEach(() => {
  expect(model.problems.splice(0)).toEqual([]);
  expect(warnings.mock.calls.splice(0)).toEqual([]);
});

const agentOf = (session: string) => new HttpAgent({ url: `${server.url}/v1/sessions/${session}/ag-ui` });

const user = (content: any) => ({ id: crypto.randomUUID(), role: "user" as const, content });

/** Runs an agent and gathers what comes. */
async function run(agent: HttpAgent, runId?: string) {
  const events: BaseEvent[] = [];
  const { newMessages } = await agent.runAgent({ runId }, { onEvent: ({ event }) => void events.push(event) });
  return { events, types: events.map((event) => event.type), newMessages };
}

const tools = {
  reasoning: ["hm, ", "well"],
  text: ["let me ", "look"],
  calls: [
    { tool: "Bash", arguments: { command: "seq 9999" } },
    { tool: "Bash", arguments: { command: "exit 3" } },
  ],
};

test("text, reasoning and parallel tools, one cut and one failed", async () => {
  model.add(tools, { text: ["many 😀", " numbers"] });
  const session = await server.session();
  const agent = agentOf(session);
  agent.messages = [user("count")];
  const { events, types, newMessages } = await run(agent);
  expect(newMessages.map((m) => m.role)).toEqual(["reasoning", "assistant", "tool", "tool", "assistant"]);
  expect(newMessages[0]).toMatchObject({ content: "hm, well" });
  expect(newMessages[1]).toMatchObject({ content: "let me look", toolCalls: [{ function: { name: "Bash", arguments: '{"command":"seq 9999"}' } }, { function: { name: "Bash" } }] });
  expect(newMessages.find((m: any) => m.metadata?.loadline?.failed)).toMatchObject({ role: "tool" });
  expect(newMessages[4]).toMatchObject({ content: "many 😀 numbers" });
  const cut: any = events.find((event: any) => event.name === "loadline.truncated");
  expect(cut.value).toMatchObject({ limit: 16384, original_bytes: 48888 });
  expect(cut.value.kept_bytes + cut.value.dropped_bytes).toBe(48888);
  expect(types.filter((type) => type === EventType.STEP_STARTED)).toHaveLength(2);
  expect(events.at(-1)).toMatchObject({ type: "RUN_FINISHED", threadId: agent.threadId, outcome: { type: "success" }, usage: [{ inputTokens: 20, outputTokens: 4 }] });

  model.add({ text: ["yes"] }); // the second run sends all of it again, and only its last message counts
  agent.addMessage(user([{ type: "text", text: "is that all?" }]));
  expect((await run(agent)).newMessages).toMatchObject([{ role: "assistant", content: "yes" }]);
  expect(model.requests.at(-1).messages.filter((m: any) => m.role === "user").map((m: any) => m.content)).toEqual(["count", "is that all?"]);
});

test("the same run again is the same turn, told from its beginning", async () => {
  model.add({ text: ["once ", "only"] });
  const session = await server.session();
  const agent = agentOf(session);
  const message = user("hi");
  agent.messages = [message];
  const first = await run(agent, "run-1");
  const second = agentOf(session);
  second.messages = [message];
  const again = await run(second, "run-1");
  expect(again.newMessages).toEqual(first.newMessages);
  expect(await server.turns(session)).toHaveLength(1);
  second.messages = [user("other")];
  await expect(run(second, "run-1")).rejects.toThrow(/HTTP 422: The idempotency key was used before/);
});

test("a run is told again while it is running", async () => {
  const { gate: held, open } = gate(1);
  model.add({ text: ["half ", "whole"], gate: held });
  const session = await server.session();
  const first = agentOf(session);
  first.messages = [user("hi")];
  const told = new Promise<void>((resolve) => first.subscribe({ onTextMessageContentEvent: () => resolve() }));
  const running = run(first, "run-1").catch(() => undefined);
  await told;
  first.abortRun(); // the client is gone in mid-part
  await running;
  const second = agentOf(session);
  second.messages = [user("hi")];
  const resumed = run(second, "run-1");
  open();
  expect((await resumed).newMessages).toMatchObject([{ content: "half whole" }]);
  expect((await server.turns(session)).map((turn) => turn.state)).toEqual(["completed"]);
});

test("a run that the server did not survive goes on when it is asked for again", async () => {
  const { gate: held, open } = gate(1);
  model.add({ text: ["half ", "lost"], gate: held }, { text: ["whole"] });
  const session = await server.session();
  const agent = agentOf(session);
  agent.messages = [user("hi")];
  const body = JSON.stringify({ threadId: "t", runId: "run-1", messages: agent.messages }); // by hand: the client drops the error of a line that breaks
  const cut = await fetch(agent.url, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  for await (const line of lines(cut)) if (line.includes("half")) break;
  await server.kill();
  open();
  await server.boot();
  const { newMessages } = await run(agent, "run-1");
  expect(newMessages).toMatchObject([{ role: "assistant", content: "whole" }]);
  expect(await server.turns(session)).toHaveLength(1);
});

test("a failed turn is RUN_ERROR with code and message", async () => {
  const { gate: held, open } = gate(1);
  model.add({ text: ["half"], gate: held, abort: true }, { status: 401, message: "who are you" });
  const agent = agentOf(await server.session());
  agent.messages = [user("hi")];
  agent.subscribe({ onTextMessageContentEvent: open }); // the model breaks off when its text has come
  const { events } = await run(agent);
  expect(events.at(-1)).toMatchObject({ type: "RUN_ERROR", code: "provider_error", message: expect.stringContaining("who are you") });
  expect(events.find((event: any) => event.name === "loadline.restarted")).toMatchObject({ value: { message_ids: [agent.messages[1]!.id] } });
});

test("a cancelled turn ends as cancelled, with nothing open", async () => {
  const { gate: held } = gate(1);
  model.add({ text: ["half ", "never"], gate: held });
  const session = await server.session();
  const agent = agentOf(session);
  agent.messages = [user("hi")];
  agent.subscribe({
    onTextMessageContentEvent: async () => {
      const [turn] = await server.turns(session);
      void server.json("POST", `/v1/sessions/${session}/turns/${turn.id}/cancel`);
    },
  });
  const { events, newMessages } = await run(agent);
  expect(events.at(-1)).toMatchObject({ type: "RUN_FINISHED", outcome: { type: "cancelled" } });
  expect(newMessages).toMatchObject([{ content: "half " }]);
});

test("what the server cannot take is refused in words, and harms nothing", async () => {
  const session = await server.session();
  const agent = agentOf(session);
  for (const [messages, words] of [
    [[], /messages must hold a message of the user/],
    [[user([{ type: "image", source: { type: "url", value: "http://x.test/a.png" } }])], /only parts of type text/],
    [[user("hi"), { id: "2", role: "tool", content: "x", toolCallId: "1" }], /the last message must be one of the user/],
  ] as const) {
    agent.messages = messages as any;
    await expect(run(agent)).rejects.toThrow(words);
  }
  await expect(run(agentOf("ses_none"))).rejects.toThrow(/HTTP 404/);
  const malformed = await fetch(agent.url, { method: "POST", body: "{", headers: { "Content-Type": "application/json" } });
  expect(malformed.status).toBe(400);
  expect(await server.turns(session)).toEqual([]);
});

test("a foreign history, tools, context and state are let pass", async () => {
  model.add({ text: ["fine"] });
  const session = await server.session();
  const agent = agentOf(session);
  agent.state = { a: [1] };
  agent.messages = [
    { id: "1", role: "system", content: "be a pirate" },
    { id: "2", role: "assistant", content: "ahoy", toolCalls: [{ id: "x", type: "function", function: { name: "f", arguments: "{" } }] },
    { id: "3", role: "tool", content: "?", toolCallId: "x" },
    user("hello"),
  ];
  const input: Partial<RunAgentInput> = { tools: [{ name: "f", description: "d", parameters: {} }], context: [{ description: "d", value: "v" }], forwardedProps: { b: 1 } };
  const { newMessages } = await agent.runAgent(input);
  expect(newMessages).toMatchObject([{ role: "assistant", content: "fine" }]);
  expect(model.requests.at(-1).messages.filter((m: any) => m.role !== "system")).toEqual([{ role: "user", content: "hello" }]);
});

test("CopilotKit's client chats, and leaves the server's tools alone", async () => {
  model.add(tools, { text: ["many numbers"] });
  const session = await server.session();
  const loadline: any = agentOf(session); // the types that CopilotKit brings are of an older AG-UI
  const core = new CopilotKitCore({ agents__unsafe_dev_only: { loadline } });
  const errors: unknown[] = [];
  core.subscribe({ onError: ({ error }) => void errors.push(error) });
  const agent = core.getAgent("loadline")!;
  agent.addMessage(user("count"));
  await core.runAgent({ agent });
  expect(errors).toEqual([]);
  expect(agent.messages.map((m) => m.role)).toEqual(["user", "reasoning", "assistant", "tool", "tool", "assistant"]);
  expect(await server.turns(session)).toHaveLength(1);

  model.add({ status: 401, message: "who are you" });
  agent.addMessage(user("again"));
  await core.runAgent({ agent });
  expect(String(errors[0])).toContain("who are you");
});
