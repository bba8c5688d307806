import { DefaultChatTransport } from "ai7";
import { useChat } from "ai7-react";
import { useState } from "react";
import { createRoot } from "react-dom/client";

// The session is in the address: it is the conversation, and outlives the page.
const address = new URLSearchParams(location.search);
const transport = new DefaultChatTransport({ api: `${address.get("server") ?? ""}/v1/sessions/${address.get("session")}/ai-sdk` });

function Chat() {
  const [text, setText] = useState("");
  const { messages, sendMessage, status, error } = useChat({ transport, resume: true });
  return (
    <main>
      {messages.map((message) => (
        <p key={message.id} className={message.role}>
          {message.parts.map((part, n) => {
            if (part.type === "text") return <span key={n}>{part.text}</span>;
            if (part.type === "dynamic-tool") return <code key={n}>{part.toolName} {part.state}</code>;
            return null;
          })}
        </p>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void sendMessage({ text });
          setText("");
        }}
      >
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        <output>{status}</output>
      </form>
    </main>
  );
}

createRoot(document.getElementById("root")!).render(<Chat />);
