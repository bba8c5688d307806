import { expect, test } from "vitest";
import { Frames, type Frame } from "../../clients/typescript/src/sse";

const tables: [name: string, text: string, want: Frame[]][] = [
  ["an event", "id: 7\nevent: item\ndata: {}\n\n", [{ id: "7", event: "item", data: "{}" }]],
  ["lines that end in CR LF", "id: 7\r\nevent: item\r\ndata: {}\r\n\r\n", [{ id: "7", event: "item", data: "{}" }]],
  ["lines that end in CR", "event: a\rdata: 1\r\rdata: 2\r\r", [{ event: "a", data: "1" }, { event: "message", data: "2" }]],
  ["a byte order mark", "\uFEFFdata: x\n\n", [{ event: "message", data: "x" }]],
  ["one that is not at the beginning", "data: \uFEFFx\n\n", [{ event: "message", data: "\uFEFFx" }]],
  ["comments", ": hello\n\ndata: x\n: within\n\n:\n\n", [{ event: "message", data: "x" }]],
  ["wide characters", "data: Grüße 🦆 日本\n\n", [{ event: "message", data: "Grüße 🦆 日本" }]],
  ["several lines of data", "data: one\ndata:\ndata:  two\n\n", [{ event: "message", data: "one\n\n two" }]],
  ["no space after the colon", "data:x\n\n", [{ event: "message", data: "x" }]],
  ["a field without a colon", "data\n\n", [{ event: "message", data: "" }]],
  ["no data", "id: 7\nevent: item\n\n", []],
  ["an unknown field", "retry: 5\nfoo: bar\ndata: x\n\n", [{ event: "message", data: "x" }]],
  ["an id with NUL", "id: 1\0\ndata: x\n\n", [{ event: "message", data: "x" }]],
  ["an event that is not whole", "data: x\n\ndata: y\n", [{ event: "message", data: "x" }]],
];

test.each(tables)("%s, cut at every two bytes", (_, text, want) => {
  const bytes = new TextEncoder().encode(text);
  for (let one = 0; one <= bytes.length; one++) {
    for (let two = one; two <= bytes.length; two++) {
      const frames = new Frames();
      const pieces = [bytes.subarray(0, one), bytes.subarray(one, two), bytes.subarray(two)];
      expect(pieces.flatMap((piece) => frames.push(piece)), `cut at ${one} and ${two}`).toEqual(want);
    }
  }
});

test.each([["a line", "x"], ["an event of many lines", "x\ndata: "]])("%s without end is given up", (_, piece) => {
  const frames = new Frames();
  frames.push(new TextEncoder().encode("data: "));
  const bytes = new TextEncoder().encode(piece.repeat(100_000));
  let pushed = 0;
  expect(() => {
    for (; pushed < 40 << 20; pushed += bytes.length) frames.push(bytes);
  }).toThrow("too long");
  expect(pushed).toBeGreaterThan(8 << 20);
});

test("a stream of many events is not an event that is too long", () => {
  const frames = new Frames();
  const event = new TextEncoder().encode(`data: ${"x".repeat(1 << 20)}\n\n`);
  for (let i = 0; i < 40; i++) expect(frames.push(event)).toHaveLength(1);
});
