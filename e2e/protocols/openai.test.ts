import OpenAI7 from "openai";
import OpenAI6 from "openai6";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Model, gate } from "../lib/model";
import { Server } from "../lib/server";

let model: Model;
let server: Server;

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
});

const hello = [{ role: "user" as const, content: "hello" }];

describe.each([
  ["openai 7", OpenAI7],
  ["openai 6", OpenAI6 as unknown as typeof OpenAI7],
])("%s", (_, OpenAI) => {
  const connect = (session?: string) =>
    new OpenAI({
      apiKey: "no key is needed",
      baseURL: `${server.url}/v1`,
      defaultHeaders: session ? { "Loadline-Session": session } : {},
    });

  test("lists the projects as models", async () => {
    const names: string[] = [];
    for await (const each of connect().models.list()) names.push(each.id);
    expect(names).toEqual(["default"]);
  });

  test("a whole answer; the history comes with the request", async () => {
    model.add({ text: ["fine"] });
    const history = [
      { role: "system" as const, content: "be a pirate" },
      { role: "user" as const, content: [{ type: "text" as const, text: "look" }, { type: "image_url" as const, image_url: { url: "data:," } }] },
      { role: "assistant" as const, content: null, tool_calls: [{ id: "x", type: "function" as const, function: { name: "look.up", arguments: "{" } }] },
      { role: "assistant" as const, content: "ahoy" },
      { role: "user" as const, content: [{ type: "text" as const, text: "and" }, { type: "text" as const, text: "now?" }] },
    ];
    const { data, response } = await connect().chat.completions.create({ model: "default", messages: history, temperature: 0.1 }).withResponse();
    expect(data.choices[0]).toMatchObject({ finish_reason: "stop", message: { role: "assistant", content: "fine" } });
    const asked = model.requests.at(-1).messages.filter((m: any) => m.role !== "system");
    expect(asked.map((m: any) => m.role)).toEqual(["user", "assistant", "tool", "assistant", "user"]);
    expect(asked.at(-1).content).toBe("and\n\nnow?");
    expect(JSON.stringify(model.requests.at(-1))).not.toContain("pirate");
    const session = response.headers.get("loadline-session")!;
    model.add({ text: ["still here"] });
    const next = await connect(session).chat.completions.create({ model: "default", messages: hello });
    expect(next.choices[0]!.message.content).toBe("still here");
    expect(await server.turns(session)).toHaveLength(3);
  });

  test("a stream with reasoning and parallel tools, one cut and one failed", async () => {
    model.add(
      { reasoning: ["hm, ", "well"], text: ["let me ", "look"], calls: [{ tool: "Bash", arguments: { command: "seq 9999" } }, { tool: "Bash", arguments: { command: "exit 3" } }] },
      { text: ["many 😀", " numbers"] },
    );
    const session = await server.session();
    const stream = connect(session).chat.completions.stream({ model: "default", messages: hello, stream_options: { include_usage: true } });
    let reasoning = "";
    for await (const chunk of stream) reasoning += (chunk.choices[0]?.delta as any)?.reasoning_content ?? "";
    const whole = await stream.finalChatCompletion();
    expect(whole.choices[0]!.message.content).toBe("let me look\n\nmany 😀 numbers");
    expect(whole.choices[0]!.message.tool_calls).toBeUndefined();
    expect(whole.choices[0]!.finish_reason).toBe("stop");
    expect(whole.usage).toMatchObject({ prompt_tokens: 20, completion_tokens: 4, total_tokens: 24 });
    expect(reasoning).toBe("hm, well");
    const results = (await server.items(session)).filter((item) => item.kind === "tool_result").map((item) => item.tool_result);
    expect(results[0].truncated.dropped_bytes).toBeGreaterThan(0);
    expect(results[1].failed).toBe(true);
  });

  test("the same key is the same turn", async () => {
    model.add({ text: ["once"] });
    const client = connect(await server.session());
    const answers = [];
    for (let i = 0; i < 2; i++) {
      answers.push(await client.chat.completions.create({ model: "default", messages: hello }, { headers: { "Idempotency-Key": "one" } }));
    }
    expect(answers[1]).toEqual(answers[0]);
    const other = client.chat.completions.create({ model: "default", messages: [{ role: "user", content: "other" }] }, { headers: { "Idempotency-Key": "one" } });
    await expect(other).rejects.toMatchObject({ status: 422, code: "idempotency_key_reused" });
  });

  test("errors are those of the package, and are not tried again", async () => {
    const client = connect(await server.session());
    const before = model.requests.length;
    model.add({ status: 401, message: "who are you" });
    await expect(client.chat.completions.create({ model: "default", messages: hello })).rejects.toMatchObject({ status: 502, code: "provider_error", type: "server_error" });
    expect(model.requests.length).toBe(before + 1);
    const image = [{ role: "user" as const, content: [{ type: "image_url" as const, image_url: { url: "data:," } }] }];
    await expect(client.chat.completions.create({ model: "default", messages: image })).rejects.toMatchObject({
      status: 400,
      code: "invalid_field",
      param: "messages.0.content.0",
      message: expect.stringContaining("only parts of type text"),
    });
    await expect(client.chat.completions.create({ model: "gpt-5", messages: hello })).rejects.toMatchObject({ status: 404, code: "model_not_found" });
    await expect(connect("ses_none").chat.completions.create({ model: "default", messages: hello })).rejects.toMatchObject({ status: 404 });
    await expect(client.chat.completions.create({ model: "default", messages: [] })).rejects.toMatchObject({ status: 400, param: "messages" });
  });

  test("a turn that is cancelled in mid-stream is an error, and the text before it stays", async () => {
    const { gate: held } = gate(1);
    model.add({ text: ["half ", "never"], gate: held });
    const session = await server.session();
    const stream = await connect(session).chat.completions.create({ model: "default", messages: hello, stream: true });
    let text = "";
    const read = async () => {
      for await (const chunk of stream) {
        text += chunk.choices[0]!.delta.content ?? "";
        if (text !== "") void server.json("POST", `/v1/sessions/${session}/turns/${chunk.id}/cancel`);
      }
    };
    await expect(read()).rejects.toMatchObject({ code: "cancelled" });
    expect(text).toBe("half ");
    expect((await server.items(session)).at(-1).assistant_message).toEqual({ text: "half ", incomplete: true });
  });

  test("a client that leaves does not harm the turn", async () => {
    const { gate: held, open } = gate(1);
    model.add({ text: ["one ", "two"], gate: held });
    const session = await server.session();
    const stream = await connect(session).chat.completions.create({ model: "default", messages: hello, stream: true });
    for await (const chunk of stream) if (chunk.choices[0]!.delta.content) break;
    stream.controller.abort();
    open();
    expect((await server.settled(session)).map((turn) => turn.state)).toEqual(["completed"]);
    expect((await server.items(session)).at(-1).assistant_message.text).toBe("one two");
  });
});
