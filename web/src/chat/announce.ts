import { signal } from '@preact/signals'
import type { Change, Conversation } from 'loadline'
import { inWords } from '../app/words'

// spoken is what a screen reader is told politely: whole sentences, never pieces.
export const spoken = signal('')

const said = new WeakMap<object, number>() // message → characters that were spoken

// announce tells what an event brings: the sentences that an answer has completed,
// and how a turn ends.
export function announce(change: Change, _: Conversation) {
  const { event, message } = change
  if (event.type === 'turn.completed') spoken.value = 'The answer is complete.'
  else if (event.type === 'turn.failed' || event.type === 'turn.cancelled' || event.type === 'turn.interrupted') {
    spoken.value = inWords(event.turn.error?.code ?? '', event.turn.error?.detail)
  } else if (event.type === 'tool.started') spoken.value = `${event.tool} runs.`
  else if (event.type === 'item.delta' && message?.kind === 'assistant_message') {
    const from = said.get(message) ?? 0
    const end = endOfSentence(message.text, from)
    if (end > from) {
      spoken.value = message.text.slice(from, end)
      said.set(message, end)
    }
  }
}

// endOfSentence is where the last whole sentence of what follows from ends. It looks
// at no more than the last stretch of a long text.
function endOfSentence(text: string, from: number): number {
  const start = Math.max(from, text.length - 400)
  let end = from
  for (const match of text.slice(start).matchAll(/[.!?…]["”)]?\s|[。！？]|\n\n/g)) end = start + match.index + match[0].length
  return end
}
