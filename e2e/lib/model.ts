import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** One answer of the model. */
export interface Step {
  reasoning?: string[];
  text?: string[];
  calls?: { tool: string; arguments: unknown }[];
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
  finish?: string;
  /** An error answer with this status instead. */
  status?: number;
  message?: string;
  /** Breaks the connection after the text. */
  abort?: boolean;
  /** Holds the answer after so many pieces, until the promise is kept. */
  gate?: { after: number; open: Promise<unknown> };
}

/** A gate that a test opens. */
export function gate(after: number): { gate: { after: number; open: Promise<void> }; open: () => void } {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { gate: { after, open: opened }, open };
}

/** A scripted model that speaks Chat Completions over real HTTP, as strictly as the real ones. */
export class Model {
  url = "";
  /** The bodies that it was sent. */
  readonly requests: any[] = [];
  /** What was wrong with them. */
  readonly problems: string[] = [];
  private readonly script: Step[] = [];
  private readonly server = createServer((request, response) => {
    void this.answer(request, response);
  });

  static async start(...script: Step[]): Promise<Model> {
    const model = new Model();
    model.add(...script);
    model.server.listen(0, "127.0.0.1");
    await once(model.server, "listening");
    model.url = `http://127.0.0.1:${(model.server.address() as AddressInfo).port}/v1`;
    return model;
  }

  add(...script: Step[]): void {
    this.script.push(...script);
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, "close");
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const piece of request.setEncoding("utf8")) text += piece;
    const body = JSON.parse(text);
    this.requests.push(body);
    const problem = check(request, body);
    const step = this.script.shift();
    if (problem !== "" || !step) {
      this.problems.push(problem || "asked more often than the script has steps");
      return refuse(response, 400, this.problems.at(-1)!);
    }
    if (step.status) return refuse(response, step.status, step.message ?? "no");
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    let sent = 0;
    for (const piece of pieces(step)) {
      if (step.gate && sent === step.gate.after) await step.gate.open;
      response.write(`data: ${JSON.stringify(piece)}\n\n`);
      sent++;
    }
    if (step.gate && sent <= step.gate.after) await step.gate.open;
    if (step.abort) return void response.destroy();
    const finish = step.finish ?? (step.calls ? "tool_calls" : "stop");
    response.write(`data: ${JSON.stringify(chunk({}, finish))}\n\n`);
    const usage = step.usage ?? { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
    response.end(`data: ${JSON.stringify({ ...chunk({}, null), choices: [], usage })}\n\ndata: [DONE]\n\n`);
  }
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify({ error: { message, type: "invalid_request_error" } }));
}

function chunk(delta: object, finish: string | null) {
  return { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "scripted", choices: [{ index: 0, delta, finish_reason: finish }] };
}

function* pieces(step: Step) {
  for (const text of step.reasoning ?? []) yield chunk({ reasoning_content: text }, null);
  for (const text of step.text ?? []) yield chunk({ content: text }, null);
  for (const [index, call] of (step.calls ?? []).entries()) {
    const made = { name: call.tool, arguments: JSON.stringify(call.arguments) };
    yield chunk({ tool_calls: [{ index, id: `call_${index}`, type: "function", function: made }] }, null);
  }
}

/** What a real service would refuse; empty when there is nothing. */
function check(request: IncomingMessage, body: any): string {
  if (request.method !== "POST" || request.url !== "/v1/chat/completions") return `asked for ${request.method} ${request.url}`;
  const open = new Set<string>();
  for (const message of body.messages) {
    if (message.role === "tool") {
      if (!open.delete(message.tool_call_id)) return `a result of ${message.tool_call_id}, which was not called`;
      continue;
    }
    if (open.size > 0) return `no result of ${[...open].join(", ")}`;
    for (const call of message.tool_calls ?? []) open.add(call.id);
    const empty = message.content === undefined || message.content === null || message.content === "";
    if (empty && !message.tool_calls) return `a blank message of role ${message.role}`;
  }
  return open.size > 0 ? `no result of ${[...open].join(", ")}` : "";
}
