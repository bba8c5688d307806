import { spanInWords } from '../app/words'
import { Ansi } from './Ansi'
import { CutBar } from './CutBar'
import { Elapsed } from './Elapsed'
import { Fold } from './Fold'
import type { Entry } from './entries'
import type { Open } from './open'

const shownArguments = 20_000 // characters

// ToolCard is a call with its result: what was asked, how it goes, what came of it.
export function ToolCard({ entry, here }: { entry: Entry; here: Open }) {
  const message = entry.message!
  const item = entry.result?.item
  const result = item?.kind === 'tool_result' ? item.tool_result : undefined
  const call = message.item?.kind === 'tool_call' ? message.item.tool_call : undefined
  const state = result ? (result.failed ? 'failed' : 'ok') : entry.turn?.ended_at ? 'stopped' : call ? 'running' : 'writing'
  return (
    <article class={`tool ${state}`} aria-label={`Tool ${call?.tool ?? ''}`}>
      <header>
        <span class="tool-state" aria-hidden="true" />
        <strong class="tool-name">{call?.tool ?? 'Tool'}</strong>
        <span class="tool-summary" dir="auto">{result?.summary ?? message.progress ?? ''}</span>
        <span class="tool-time">
          {words[state]}{' '}
          {state === 'running' && <Elapsed since={message.startedAt ?? message.at} />}
          {result && item && message.item && spanInWords(Date.parse(item.at) - Date.parse(message.item.at))}
        </span>
      </header>
      <Fold entry={entry} title="Arguments">{() => <pre tabIndex={0}>{argumentsOf(call, message.text)}</pre>}</Fold>
      {result?.content !== undefined && (
        <Fold entry={entry} title={result.truncated ? 'What was kept' : 'Result'} atFirst={result.failed}>{() => <Ansi text={result.content!} />}</Fold>
      )}
      {result?.truncated && <CutBar entry={entry} sessionID={here.id} result={result} cut={result.truncated} />}
    </article>
  )
}

const words = { ok: 'done', failed: 'failed', stopped: 'stopped', running: 'running', writing: 'being asked for' }

function argumentsOf(call: { arguments?: unknown; raw?: string } | undefined, written: string): string {
  const text = call?.arguments !== undefined ? JSON.stringify(call.arguments, null, 2) : (call?.raw ?? written)
  return text.length > shownArguments ? `${text.slice(0, shownArguments)} …` : text
}
