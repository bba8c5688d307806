// Counts is what the metrics say of one tool since the server started.
export interface Counts {
  calls: number
  cuts: number // results that were cut
  originalBytes: number
  droppedBytes: number
}

const fields: Record<string, keyof Counts> = {
  loadline_tool_calls_total: 'calls',
  loadline_tool_output_truncations_total: 'cuts',
  loadline_tool_output_bytes_total: 'originalBytes',
  loadline_tool_output_truncated_bytes_total: 'droppedBytes',
}

// countsOf reads the counts of each tool from the text form of Prometheus.
export function countsOf(text: string): Map<string, Counts> {
  const counts = new Map<string, Counts>()
  for (const [, name, labels, value] of text.matchAll(/^(loadline_tool_\w+)\{([^}]*)\} (\S+)$/gm)) {
    const field = fields[name!]
    const tool = /tool="([^"]*)"/.exec(labels!)?.[1]
    if (!field || tool === undefined) continue
    const of = counts.get(tool) ?? { calls: 0, cuts: 0, originalBytes: 0, droppedBytes: 0 }
    of[field] += Number(value)
    counts.set(tool, of)
  }
  return counts
}
