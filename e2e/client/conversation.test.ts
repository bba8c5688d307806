import { Conversation, type Change, type Event, type Item, type Session, type Turn } from "loadline";
import { expect, test } from "vitest";

const at = "2026-03-01T09:31:00.000010Z";
const session: Session = { id: "ses_1", project: "default", title: "", metadata: {}, state: "running", queued: 0, last_seq: 0, created_at: at, updated_at: at };
const zero = { input_tokens: 0, cached_input_tokens: 0, output_tokens: 0 };
const turn = (id: string, state: Turn["state"]): Turn => ({ id, session_id: "ses_1", state, input: "x", mode: "enqueue", created_at: at, steps: 0, usage: zero, ...(state === "queued" || state === "running" ? {} : { ended_at: at }) });
const item = (n: number, text: string): Item => ({ n, session_id: "ses_1", turn_id: "trn_1", at, kind: "assistant_message", assistant_message: { text } });

/** Makes events of one session, whose durable ones are numbered. */
function events() {
  let seq = 0;
  const base = { session_id: "ses_1", turn_id: "trn_1", at };
  return {
    item: (n: number, text: string) => ({ ...base, type: "item", seq: ++seq, item: item(n, text) }) as Event,
    delta: (item_n: number, at_byte: number, text: string) => ({ ...base, type: "item.delta", item_n, kind: "assistant_message", at_byte, text }) as Event,
    turn: (type: string, turn: Turn) => ({ ...base, type, seq: ++seq, turn_id: turn.id, turn }) as Event,
    other: (type: string, more: object = {}) => ({ ...base, type, seq: ++seq, ...more }) as Event,
    fleeting: (type: string, more: object) => ({ ...base, type, ...more }) as Event,
  };
}

const shown = (conversation: Conversation) => conversation.messages.map(({ n, item, text }) =>
  `${n} ${item?.kind === "assistant_message" ? item.assistant_message.text : text}${item ? "" : "…"}`);

test("pieces grow at their byte, and those that came before change nothing", () => {
  const conversation = new Conversation(session);
  const { delta, item } = events();
  conversation.apply(delta(1, 0, "Grü"));
  conversation.apply(delta(1, 0, "Grü"));
  conversation.apply(delta(1, 2, "üße 🦆"));
  conversation.apply(delta(1, 8, "🦆."));
  expect(shown(conversation)).toEqual(["1 Grüße 🦆.…"]);
  expect(conversation.get(1)!.bytes).toBe(13);
  conversation.apply(item(1, "Grüße 🦆."));
  conversation.apply(delta(1, 13, "late"));
  expect(shown(conversation)).toEqual(["1 Grüße 🦆."]);
});

test("items come in any order and are shown in that of their numbers", () => {
  const conversation = new Conversation(session);
  const { delta, item } = events();
  for (const event of [item(4, "d"), delta(6, 0, "f"), item(1, "a"), item(5, "e"), delta(2, 0, "b")]) conversation.apply(event);
  expect(shown(conversation)).toEqual(["1 a", "2 b…", "4 d", "5 e", "6 f…"]);
});

test("a durable event counts once", () => {
  const conversation = new Conversation(session);
  const { turn: of, other, item } = events();
  const started = of("turn.started", turn("trn_1", "running"));
  const completed = other("step.completed", { usage: { input_tokens: 10, cached_input_tokens: 4, output_tokens: 2 } });
  const changes: Change[] = [];
  const leave = conversation.subscribe((change) => changes.push(change));
  for (const event of [started, completed, started, completed]) conversation.apply(event);
  expect(conversation.running).toMatchObject({ steps: 1, usage: { input_tokens: 10, cached_input_tokens: 4, output_tokens: 2 } });
  expect(changes.map(({ turn }) => turn)).toEqual(["trn_1", "trn_1"]);
  leave();
  conversation.apply(item(1, "a"));
  expect(changes).toHaveLength(2);
});

test("what is voided goes, what is stored stays", () => {
  const conversation = new Conversation(session);
  const { delta, item, other, turn: of } = events();
  for (const event of [item(1, "a"), delta(2, 0, "b"), delta(3, 0, "c"), other("step.restarted", { attempt: 1, wait_ms: 0, reason: "x" })]) conversation.apply(event);
  expect(shown(conversation)).toEqual(["1 a"]);
  expect(conversation.get(2)).toBeUndefined();
  for (const event of [delta(2, 0, "B"), item(2, "B!"), delta(3, 0, "C"), of("turn.failed", turn("trn_1", "failed"))]) conversation.apply(event);
  expect(shown(conversation)).toEqual(["1 a", "2 B!"]);
});

test("a reset drops what is being written, and one to the beginning everything", () => {
  const conversation = new Conversation(session);
  const { delta, item, fleeting, turn: of } = events();
  const first = [of("turn.started", turn("trn_1", "running")), item(1, "a"), item(2, "b")];
  for (const event of [...first, delta(3, 0, "c"), fleeting("stream.reset", { from: 2 }), first[2]!, delta(3, 0, "cc")]) conversation.apply(event);
  expect(shown(conversation)).toEqual(["1 a", "2 b", "3 cc…"]);
  conversation.apply(fleeting("stream.reset", { from: 0 }));
  expect([conversation.messages, conversation.turns.size, conversation.running]).toEqual([[], 0, undefined]);
  for (const event of first) conversation.apply(event);
  expect(shown(conversation)).toEqual(["1 a", "2 b"]);
  expect(conversation.running?.id).toBe("trn_1");
});

test("turns wait in order, run, and end", () => {
  const conversation = new Conversation(session);
  const { turn: of } = events();
  conversation.load(0, [turn("trn_0", "completed"), turn("trn_1", "running")], []);
  for (const id of ["trn_2", "trn_3", "trn_4"]) conversation.apply(of("turn.queued", turn(id, "queued")));
  conversation.apply(of("turn.cancelled", turn("trn_3", "cancelled")));
  expect([conversation.running?.id, conversation.queue.map(({ id }) => id)]).toEqual(["trn_1", ["trn_2", "trn_4"]]);
  conversation.apply(of("turn.completed", turn("trn_1", "completed")));
  conversation.apply(of("turn.started", turn("trn_2", "running")));
  expect([conversation.running?.id, conversation.queue.map(({ id }) => id), conversation.turns.size]).toEqual(["trn_2", ["trn_4"], 5]);
});

test("a tool says that it runs, and how far it is", () => {
  const conversation = new Conversation(session);
  const { item, fleeting } = events();
  for (const event of [fleeting("tool.progress", { item_n: 1, tool: "Bash", text: "too early" }), item(1, "a"),
    fleeting("tool.started", { item_n: 1, tool: "Bash" }), fleeting("tool.progress", { item_n: 1, tool: "Bash", text: "half" })]) conversation.apply(event);
  expect(conversation.get(1)).toMatchObject({ startedAt: at, progress: "half" });
});

test("what a newer server sends harms nothing", () => {
  const conversation = new Conversation(session);
  const { other, fleeting, item } = events();
  const picture = { n: 1, session_id: "ses_1", turn_id: "trn_1", at, kind: "picture", picture: { url: "x" } };
  for (const event of [other("turn.rated", { stars: 5 }), fleeting("cursor.moved", { x: 1 }), other("item", { item: picture }), item(2, "b")]) conversation.apply(event);
  expect(conversation.messages.map(({ kind }) => kind)).toEqual(["picture", "assistant_message"]);
  expect(conversation.seq).toBe(3);
});

test("a delta costs the same, however long the history and the answer are", () => {
  const conversation = new Conversation(session);
  const { item, delta } = events();
  for (let n = 1; n <= 20_000; n++) conversation.apply(item(n, "x"));
  const { messages } = conversation;
  const untouched = new Proxy(messages, { get: () => { throw new Error("the list was read"); } });
  conversation.apply(delta(20_001, 0, "x"));
  Object.assign(conversation, { messages: untouched });
  for (let i = 1; i < 100_000; i++) conversation.apply(delta(20_001, i, "x"));
  expect(messages.at(-1)!.text).toHaveLength(100_000);
});
