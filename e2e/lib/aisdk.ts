import * as ai5 from "ai5";
import { useChat as useChat5 } from "ai5-react";
import * as ai6 from "ai6";
import { useChat as useChat6 } from "ai6-react";
import * as ai7 from "ai7";
import { useChat as useChat7 } from "ai7-react";
import { Window } from "happy-dom";
import { createElement, useEffect } from "react";
import { createRoot } from "react-dom/client";

/** The majors of the package `ai`, each with its `@ai-sdk/react`. They share what is used here. */
export const majors = [
  { major: 5, Transport: ai5.DefaultChatTransport, useChat: useChat5 },
  { major: 6, Transport: ai6.DefaultChatTransport, useChat: useChat6 },
  { major: 7, Transport: ai7.DefaultChatTransport, useChat: useChat7 },
] as unknown as Major[];

export interface Major {
  major: number;
  Transport: new (options: object) => Transport;
  useChat: (options: object) => Chat;
}

export interface Transport {
  sendMessages(options: object): Promise<ReadableStream<any>>;
  reconnectToStream(options: object): Promise<ReadableStream<any> | null>;
}

export interface Message {
  id: string;
  role: "user" | "assistant";
  metadata?: any;
  parts: any[];
}

export interface Chat {
  id: string;
  status: "submitted" | "streaming" | "ready" | "error";
  error?: Error;
  messages: Message[];
  sendMessage(message: object): Promise<void>;
  regenerate(options?: object): Promise<void>;
  resumeStream(): Promise<void>;
  stop(): Promise<void>;
}

/** A component that uses useChat, in a document of its own. */
export class View {
  chat!: Chat; // undefined until the first rendering
  /** What onData was given. */
  readonly data: any[] = [];
  private readonly root;
  private waiting: (() => void)[] = [];

  constructor({ useChat, Transport }: Major, api: string, options: { transport?: object } & Record<string, unknown> = {}) {
    const window = new Window();
    Object.assign(globalThis, { window, document: window.document });
    const given = { onData: (part: any) => this.data.push(part), ...options, transport: new Transport({ api, ...options.transport }) };
    const Component = () => {
      this.chat = useChat(given);
      useEffect(() => this.rendered());
      return null;
    };
    this.root = createRoot(window.document.createElement("div") as unknown as Element);
    this.root.render(createElement(Component));
  }

  /** Waits until a chat as it was rendered is as wanted. */
  async until(wanted: (chat: Chat) => unknown): Promise<Chat> {
    while (!this.chat || !wanted(this.chat)) await new Promise<void>((resolve) => this.waiting.push(resolve));
    return this.chat;
  }

  /** Sends a text, and waits for the end of the answer. */
  async say(text: string): Promise<Chat> {
    const before = (await this.until(() => true)).messages.length;
    await this.chat.sendMessage({ text });
    return this.until((chat) => chat.messages.length > before && (chat.status === "ready" || chat.status === "error"));
  }

  /** The page goes away, and with it its connection. */
  async close(): Promise<void> {
    await this.chat?.stop();
    this.root.unmount();
  }

  private rendered(): void {
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}

/** What a message says: the texts of its last attempts. */
export function textOf(message: Message | undefined): string {
  return partsOf(message, "text").map((part) => part.text).join("");
}

/** The parts of a type that are not void: data-restarted makes those of its step before it so. */
export function partsOf(message: Message | undefined, type: string): any[] {
  const valid: any[] = [];
  let step = 0;
  for (const part of message?.parts ?? []) {
    if (part.type === "data-restarted") valid.length = step;
    else valid.push(part);
    if (part.type === "step-start") step = valid.length;
  }
  return valid.filter((part) => part.type === type);
}
