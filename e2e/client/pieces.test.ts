import { Conversation, type Event, type Session } from "loadline";
import { expect, test } from "vitest";

const session = { id: "ses_1", last_seq: 0 } as Session;
const delta = (item_n: number, at_byte: number, text: string) =>
  ({ type: "item.delta", session_id: "ses_1", turn_id: "trn_1", at: "2026-12-01T00:00:00.000000Z", item_n, kind: "assistant_message", at_byte, text }) as Event;

test("any text is whole, in whatever pieces and however often they come", () => {
  const text = "Grüße, 🦆 und 日本語: naïve\r\n";
  const runes = [...text];
  const random = mulberry(7);
  for (let round = 0; round < 500; round++) {
    const conversation = new Conversation(session);
    let reached = 0; // runes
    while (reached < runes.length) {
      const from = Math.max(0, reached - Math.floor(random() * 4));
      const to = Math.min(runes.length, from + Math.floor(random() * 6));
      conversation.apply(delta(1, Buffer.byteLength(runes.slice(0, from).join("")), runes.slice(from, to).join("")));
      reached = Math.max(reached, to);
    }
    expect(conversation.messages[0]!.text, `round ${round}`).toBe(text);
  }
});

/** Random numbers from a seed, the same in each run. */
function mulberry(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
