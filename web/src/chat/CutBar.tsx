import type { ToolResult } from 'loadline'
import { grouped } from '../app/words'
import type { Entry } from './entries'
import { useUnfolded } from './Fold'
import { WholeOutput } from './WholeOutput'

type Cut = NonNullable<ToolResult['truncated']>

// CutBar shows how much of an output was kept for the model, and opens the whole.
export function CutBar({ entry, sessionID, result, cut }: { entry: Entry; sessionID: string; result: ToolResult; cut: Cut }) {
  const [open, setOpen] = useUnfolded(entry, 'the whole output')
  const kept = result.kept_output
  return (
    <div class="cut">
      <div class="bar" aria-hidden="true"><span style={{ width: `${Math.max(0.5, (100 * cut.kept_bytes) / Math.max(1, cut.original_bytes))}%` }} /></div>
      <p class="cut-words">
        <strong>Cut.</strong> {grouped(cut.kept_bytes)} of {grouped(cut.original_bytes)} bytes kept; limit {grouped(cut.limit)}.{' '}
        {kept?.error && (kept.error === 'quota' ? 'The rest was larger than all that may be kept.' : 'The rest could not be kept: the disk refused.')}
        {!kept && 'The rest was not kept.'}
      </p>
      {kept?.bytes !== undefined && !open && <button type="button" onClick={() => setOpen(true)}>Open the whole output</button>}
      {kept?.bytes !== undefined && open && <WholeOutput sessionID={sessionID} n={entry.result!.n} bytes={kept.bytes} close={() => setOpen(false)} />}
    </div>
  )
}
