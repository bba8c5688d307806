import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { Loadline, type Problem } from "loadline";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { hurry } from "../lib/hurry";
import { gate, Model } from "../lib/model";
import { Proxy } from "../lib/proxy";
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

const unknown = { session_id: "ses_01940f3e7a8b7c11b2a64f1d0c9e5a21" };

test("what is refused is a problem with its facts", async () => {
  await expect(loadline.get("/v1/sessions/{session_id}", { params: unknown })).rejects.toMatchObject({ name: "Problem", status: 404, code: "not_found" });
  await expect(loadline.post("/v1/sessions", { body: { project: "elsewhere" } })).rejects.toMatchObject({ status: 422 });
  const session = (await loadline.post("/v1/sessions", { body: {} })).id;
  const blank = await loadline.send(session, " ").catch((err: Problem) => err);
  expect(blank).toMatchObject({ status: 400, errors: [{ pointer: "/input" }] });
  const held = gate(1);
  model.add({ text: ["one ", "two"], gate: held.gate });
  await loadline.send(session, "count");
  await expect(loadline.send(session, "count", { mode: "reject" })).rejects.toMatchObject({ status: 409 });
  held.open();
  await server.settled(session);
  const idempotencyKey = "once";
  model.add({ text: ["one"] });
  const turn = await loadline.send(session, "say one", { idempotencyKey });
  expect((await loadline.send(session, "say one", { idempotencyKey })).id).toBe(turn.id);
  await expect(loadline.send(session, "say two", { idempotencyKey })).rejects.toMatchObject({ status: 422 });
  await server.settled(session);
});

test("without its key a server is closed, and says so", async () => {
  const closed = await Server.start({ manifest: `[server.keys]\nann = "sha256:${"0".repeat(64)}"` });
  await expect(new Loadline({ baseURL: closed.url }).get("/v1/sessions")).rejects.toMatchObject({ status: 401 });
  const leave = new AbortController();
  const read = (async () => {
    for await (const _ of new Loadline({ baseURL: closed.url, key: () => "wrong" }).follow(unknown.session_id, { signal: leave.signal }));
  })();
  await expect(read).rejects.toMatchObject({ status: 401 });
  await closed.close();
});

test("an answer that is no problem, and no answer at all, are problems too", async () => {
  const odd = createServer((_, response) => response.writeHead(502, { "Content-Type": "text/html" }).end("<h1>Bad gateway</h1>"));
  odd.listen(0, "127.0.0.1");
  await once(odd, "listening");
  const url = `http://127.0.0.1:${(odd.address() as AddressInfo).port}`;
  await expect(new Loadline({ baseURL: url }).get("/v1/sessions")).rejects.toMatchObject({ status: 502, code: "http_502", detail: "<h1>Bad gateway</h1>" });
  odd.close();
  await once(odd, "close");
  await expect(new Loadline({ baseURL: url }).get("/v1/sessions")).rejects.toMatchObject({ status: 0, code: "network" });
});

test("an answer that is not JSON is malformed, and one that has no body is nothing", async () => {
  const page = new Loadline({ fetch: async () => new Response("<h1>Hello</h1>", { headers: { "Content-Type": "text/html" } }) });
  await expect(page.get("/v1/sessions")).rejects.toMatchObject({ status: 200, code: "malformed" });
  const session = await new Loadline({ baseURL: server.url + "/" }).post("/v1/sessions", { body: {} });
  expect(await loadline.delete("/v1/sessions/{session_id}", { params: { session_id: session.id } })).toBeUndefined();
});

test("whoever gives up a turn gets their own reason, and it is not tried again", async () => {
  let asked = 0;
  const silent = new Loadline({ fetch: (_, init) => new Promise((_, fail) => {
    asked++;
    init!.signal!.addEventListener("abort", () => fail(init!.signal!.reason));
  }) });
  const leave = new AbortController();
  const sent = silent.send("ses_1", "hello", { signal: leave.signal });
  leave.abort(new Error("enough"));
  await expect(sent).rejects.toThrow("enough");
  await expect(silent.send("ses_1", "hello", { signal: AbortSignal.timeout(1) })).rejects.toThrow();
  expect(asked).toBe(2);
});

test("a turn whose answer was lost is sent again, and runs once", async () => {
  model.add({ text: ["once"] });
  const session = (await loadline.post("/v1/sessions", { body: {} })).id;
  const proxy = await Proxy.before(server.url);
  proxy.cutAfter = 0; // the request arrives, its answer does not
  let asked = 0;
  const lossy = new Loadline({ baseURL: proxy.url, fetch: (...request) => {
    if (++asked === 3) proxy.cutAfter = Infinity;
    return fetch(...request);
  } });
  const turn = await lossy.send(session, "only once");
  expect(asked).toBe(3);
  expect(await server.settled(session)).toMatchObject([{ id: turn.id, state: "completed", input: "only once" }]);
  expect(model.problems).toEqual([]);
  await proxy.close();
});

test("a turn whose answer breaks off after any byte is sent again, and runs once", async () => {
  onTestFinished(hurry());
  let whole = false;
  let after = 1;
  for (; !whole; after++) {
    const session = await server.session();
    const proxy = await Proxy.before(server.url);
    proxy.cutAfter = after;
    let asked = 0;
    const lossy = new Loadline({ baseURL: proxy.url, fetch: (...request) => {
      if (++asked === 2) proxy.cutAfter = Infinity;
      return fetch(...request);
    } });
    model.add({ text: ["once"] });
    const turn = await lossy.send(session, "only once");
    whole = asked === 1;
    expect(asked, `requests when cut after ${after} bytes`).toBe(whole ? 1 : 2);
    expect(await server.settled(session), `cut after ${after} bytes`).toMatchObject([{ id: turn.id, state: "completed" }]);
    await proxy.close();
  }
  expect(after).toBeGreaterThan(300);
}, 120_000);

test("a turn waits for a server that a proxy cannot reach for a moment, not for one that refuses", async () => {
  let asked = 0;
  const answers = [() => new Response("<h1>Bad gateway</h1>", { status: 502 }), () => Response.json({ code: "storage", detail: "no", errors: [] }, { status: 503 })];
  const client = new Loadline({ fetch: async () => answers[asked++]!() });
  await expect(client.send("ses_1", "x")).rejects.toMatchObject({ status: 503, code: "storage" });
  expect(asked).toBe(2);
});

test("a turn that nobody answers is given up when its caller leaves", async () => {
  const leave = new AbortController();
  const dead = new Loadline({ fetch: (_, init) => new Promise((_, reject) => init!.signal!.addEventListener("abort", () => reject(init!.signal!.reason))) });
  const sent = dead.send("ses_1", "x", { signal: leave.signal });
  leave.abort();
  await expect(sent).rejects.toMatchObject({ name: "AbortError" });
});
