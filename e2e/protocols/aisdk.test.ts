import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { majors, partsOf, textOf, View, type Message } from "../lib/aisdk";
import { gate, Model } from "../lib/model";
import { Server } from "../lib/server";

let model: Model;
let server: Server;
let session: string;
let api: string;
const views: View[] = [];

beforeEach(async () => {
  model = await Model.start();
  server = await Server.start({ model: model.url });
  session = await server.session();
  api = `${server.url}/v1/sessions/${session}/ai-sdk`;
});

afterEach(async () => {
  for (const view of views.splice(0)) await view.close();
  await server.close();
  await model.close();
  expect(model.problems).toEqual([]);
});

const user = (id: string, text: string): Message => ({ id, role: "user", parts: [{ type: "text", text }] });

describe.each(majors)("ai $major", (major) => {
  const open = (options = {}) => {
    const view = new View(major, api, options);
    views.push(view);
    return view;
  };

  test("text and reasoning", async () => {
    model.add({ reasoning: ["hm", "…"], text: ["Hello ", "<b>\n", "😀"] });
    const chat = await open().say("hi");
    const [turn] = await server.turns(session);
    expect(chat.error).toBeUndefined();
    expect(chat.messages).toHaveLength(2);
    expect(chat.messages[1]).toMatchObject({
      id: turn.id,
      role: "assistant",
      metadata: { turn_id: turn.id, state: "completed", usage: turn.usage },
      parts: [
        { type: "step-start" },
        { type: "reasoning", text: "hm…", state: "done" },
        { type: "text", text: "Hello <b>\n😀", state: "done" },
      ],
    });
  });

  test("parallel tools: one cut, one failed, one well", async () => {
    const big = "yes | head -c 100000";
    model.add(
      { text: ["Let me see."], calls: [{ tool: "Bash", arguments: { command: big } }, { tool: "Read", arguments: { path: "gone.txt" } }, { tool: "Glob", arguments: { pattern: "*" } }] },
      { text: ["Done."] },
    );
    const { messages, error } = await open().say("look");
    expect(error).toBeUndefined();
    const answer = messages[1]!;
    const tools = answer.parts.filter((part) => part.type === "dynamic-tool");
    expect(tools.map((part) => [part.toolName, part.state, part.providerExecuted])).toEqual([
      ["Bash", "output-available", true],
      ["Read", "output-error", true],
      ["Glob", "output-available", true],
    ]);
    expect(tools[0].input).toEqual({ command: big });
    expect(tools[1].errorText).toContain("gone.txt");
    const results = (await server.items(session)).filter((item) => item.kind === "tool_result").map((item) => item.tool_result);
    expect(tools[0].output).toEqual({ summary: results[0].summary, content: results[0].content });
    const cuts = answer.parts.filter((part) => part.type === "data-truncated");
    expect(cuts.map((part) => part.data)).toEqual([{ toolCallId: tools[0].toolCallId, ...results[0].truncated, kept_output: results[0].kept_output }]);
    expect(answer.parts.filter((part) => part.type === "step-start")).toHaveLength(2);
    expect(textOf(answer)).toBe("Let me see.Done.");
    expect(answer.metadata.state).toBe("completed");
  });

  test("an error of the provider is shown in words", async () => {
    model.add({ status: 401, message: "who are you" });
    const { status, error, messages } = await open().say("hi");
    const [turn] = await server.turns(session);
    expect(status).toBe("error");
    expect(error!.message).toBe(turn.error.detail);
    expect(messages[1]!.metadata).toMatchObject({ state: "failed", error: { code: "provider_error" } });
    model.add({ text: ["better"] });
    expect(textOf((await views[0]!.say("again")).messages.at(-1))).toBe("better");
  });

  test("a turn that is cancelled keeps its text", async () => {
    const { gate: held, open: release } = gate(1);
    model.add({ text: ["half ", "never"], gate: held });
    const view = open();
    const said = view.say("go");
    const { messages } = await view.until((chat) => textOf(chat.messages[1]) === "half ");
    await server.json("POST", `/v1/sessions/${session}/turns/${messages[1]!.metadata.turn_id}/cancel`);
    const chat = await said;
    release();
    expect([chat.status, textOf(chat.messages[1]), chat.messages[1]!.metadata.state]).toEqual(["ready", "half ", "cancelled"]);
    expect(chat.messages[1]!.parts.at(-1)).toMatchObject({ type: "text", state: "done" });
  });

  test("stop leaves, the turn goes on, and a page that is loaded again resumes it", async () => {
    const { gate: held, open: release } = gate(2);
    model.add({ calls: [{ tool: "Glob", arguments: { pattern: "*" } }] }, { text: ["one ", "two ", "three"], gate: held });
    const first = open();
    const sent = (await first.until(() => true)).sendMessage({ text: "count" });
    await first.until((chat) => textOf(chat.messages[1]) === "one two ");
    await first.close();
    views.splice(0);
    await sent;
    const again = open({ id: "another name", resume: true, messages: [user("m1", "count")] });
    await again.until((chat) => textOf(chat.messages[1]) === "one two ");
    release();
    const chat = await again.until((chat) => chat.messages[1]?.metadata.state);
    expect([chat.messages.length, textOf(chat.messages[1]), chat.error]).toEqual([2, "one two three", undefined]);
    expect(partsOf(chat.messages[1], "dynamic-tool")).toHaveLength(1);
    expect((await server.settled(session)).map((turn) => turn.state)).toEqual(["completed"]);
    await again.chat.resumeStream(); // nothing runs any more
    await again.until((chat) => chat.status === "ready");
    expect(again.chat.messages).toHaveLength(2);
  });

  test("a client that leaves in the middle of a part harms nothing", async () => {
    const { gate: held, open: release } = gate(1);
    model.add({ text: ["one ", "two"], gate: held });
    const view = open();
    const said = view.say("go");
    await view.until((chat) => textOf(chat.messages[1]) === "one ");
    await view.chat.stop();
    await said;
    release();
    expect((await server.settled(session)).map((turn) => turn.state)).toEqual(["completed"]);
    expect((await server.items(session)).at(-1).assistant_message.text).toBe("one two");
  });

  test("the same chat resumes what it had begun to show, without a double", async () => {
    const { gate: held, open: release } = gate(2);
    model.add({ text: ["one ", "two ", "three"], gate: held });
    const view = open();
    const said = view.say("count");
    await view.until((chat) => textOf(chat.messages[1]) === "one two ");
    await view.chat.stop();
    await said;
    const resumed = view.chat.resumeStream();
    await view.until((chat) => chat.status === "streaming");
    release();
    await resumed;
    const chat = await view.until((chat) => chat.messages[1]?.metadata.state);
    expect([chat.messages.length, textOf(chat.messages[1])]).toEqual([2, "one two three"]);
  });

  test("text that became void is told apart", async () => {
    const { gate: held, open: release } = gate(1);
    model.add({ text: ["half an"], gate: held, abort: true }, { text: ["whole"] });
    const said = open().say("go");
    await views[0]!.until((chat) => textOf(chat.messages[1]) === "half an");
    release();
    const chat = await said;
    expect(chat.messages[1]!.parts.map((part) => part.text ?? part.type)).toEqual(["step-start", "half an", "data-restarted", "whole"]);
    expect(textOf(chat.messages[1])).toBe("whole");
    expect(views[0]!.data.map((part) => part.type)).toEqual(["data-retrying", "data-restarted"]);
  });

  test("a server that dies is an error, and the turn is there when it is back", async () => {
    const before = gate(1);
    const after = gate(1);
    model.add({ text: ["half ", "never"], gate: before.gate }, { text: ["one ", "two"], gate: after.gate });
    const view = open();
    const said = view.say("go");
    await view.until((chat) => textOf(chat.messages[1]) === "half ");
    await server.kill();
    expect((await said).status).toBe("error");
    before.open();
    await server.boot();
    const again = open({ id: "another name", resume: true, messages: [user("m1", "go")] });
    await again.until((chat) => textOf(chat.messages[1]) === "one ");
    after.open();
    const chat = await again.until((chat) => chat.messages[1]?.metadata.state);
    expect([textOf(chat.messages[1]), chat.messages[1]!.metadata.state, chat.error]).toEqual(["one two", "completed", undefined]);
  });

  test("a malformed body is refused in words, and a session that is not there", async () => {
    const view = open({ transport: { prepareSendMessagesRequest: () => ({ body: { messages: "no" } }) } });
    expect((await view.say("hi")).error!.message).toBe("The body has invalid fields: /messages must be a list of messages");
    api = api.replace(/ses_.{32}/, `ses_${"0".repeat(32)}`);
    expect((await open().say("hi")).error!.message).toMatch(/^Nothing is here: nothing has this id/);
    expect(await server.turns(session)).toEqual([]);
  });

  test("a part that cannot be taken is refused, and nothing runs", async () => {
    const view = open();
    await view.until(() => true);
    await view.chat.sendMessage({ parts: [{ type: "text", text: "what is this?" }, { type: "file", mediaType: "image/png", url: "data:image/png;base64,AA==" }] });
    const chat = await view.until((chat) => chat.status === "error");
    expect(chat.error!.message).toContain('/messages/0/parts/1 is of type "file": only parts of type text can be taken');
    expect(await server.turns(session)).toEqual([]);
  });

  test("a history from elsewhere is let pass, and not sent on", async () => {
    model.add({ text: ["yes"] });
    const history = [
      user("a", "old question"),
      { id: "b", role: "assistant", parts: [{ type: "tool-search", toolCallId: "x", state: "input-available", input: {} }, { type: "hologram" }, { type: "text", text: "old answer" }] },
    ];
    const chat = await open({ messages: history }).say("new question");
    expect([chat.error, textOf(chat.messages.at(-1))]).toEqual([undefined, "yes"]);
    const sent = JSON.stringify(model.requests[0].messages);
    expect(sent).toContain("new question");
    expect(sent).not.toContain("old");
  });

  test("the same request again is the same turn", async () => {
    model.add({ text: ["once"] });
    const transport = new major.Transport({ api });
    const request = { chatId: "c", messages: [user("m1", "go")], trigger: "submit-message", abortSignal: undefined };
    const read = async () => {
      const chunks = [];
      for await (const chunk of (await transport.sendMessages(request)) as any) chunks.push(chunk);
      return chunks;
    };
    const first = await read();
    expect(await read()).toEqual(first);
    expect(first.at(-1)).toMatchObject({ type: "finish", finishReason: "stop" });
    expect(await server.turns(session)).toHaveLength(1);
    expect(model.requests).toHaveLength(1);
  });

  test("a message is answered again, and one is edited", async () => {
    model.add({ text: ["first"] }, { text: ["second"] }, { text: ["third"] }, { text: ["fourth"] });
    const view = open();
    await view.say("go");
    for (const want of ["second", "third"]) {
      await view.chat.regenerate();
      await view.until((chat) => chat.status === "ready" && textOf(chat.messages[1]) === want);
    }
    await view.chat.sendMessage({ text: "stop", messageId: view.chat.messages[0]!.id });
    await view.until((chat) => chat.status === "ready" && textOf(chat.messages[1]) === "fourth");
    expect(view.chat.messages).toHaveLength(2);
    expect((await server.turns(session)).map((turn) => turn.input)).toEqual(["go", "go", "go", "stop"]);
  });
});

// After this 5 and 6 go on with the message that they have, whatever a replay begins with, so its text comes twice:
// there a new chat has to resume, as when a page is loaded again.
test("a chat of ai 7 resumes after the network was lost", async () => {
  const { gate: held, open: release } = gate(2);
  model.add({ text: ["one ", "two ", "three"], gate: held });
  let lose!: (reason: Error) => void;
  const lost = new Promise<never>((_, reject) => (lose = reject));
  const flaky: typeof fetch = async (...request) => {
    const answer = await fetch(...request);
    if (request[1]?.method !== "POST") return answer;
    const reader = answer.body!.getReader();
    return new Response(new ReadableStream({
      pull: async (to) => {
        const { value } = await Promise.race([reader.read(), lost]);
        to.enqueue(value);
      },
    }));
  };
  const view = new View(majors[2]!, api, { transport: { fetch: flaky } });
  views.push(view);
  const said = view.say("count");
  await view.until((chat) => textOf(chat.messages[1]) === "one two ");
  lose(new TypeError("network error"));
  expect((await said).status).toBe("error");
  const resumed = view.chat.resumeStream();
  await view.until((chat) => chat.status === "streaming");
  release();
  await resumed;
  const chat = await view.until((chat) => chat.messages[1]?.metadata.state);
  expect(textOf(chat.messages[1])).toBe("one two three");
});
