import { escapes, read } from './terminal'

const maxColoured = 200_000 // characters; longer text loses its colours

// Ansi shows what a tool printed, with the colours that it meant for a terminal.
export function Ansi({ text }: { text: string }) {
  const pieces = text.length > maxColoured ? [{ text: text.replace(escapes, ''), style: '' }] : read(text)
  return <pre class="output" tabIndex={0} dir="auto">{pieces.map(({ text, style }, i) => (style ? <span key={i} class={style}>{text}</span> : text))}</pre>
}
