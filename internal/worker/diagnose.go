package worker

import (
	"cmp"
	"slices"

	"loadline/internal/session"
)

// maxContributors is how many items a diagnosis names.
const maxContributors = 10

// Diagnose projects the next request over a history and names its largest items. It
// changes nothing.
func (e *Engine) Diagnose(h *History) session.NextRequest {
	p := e.Project(h)
	next := session.NextRequest{
		HistoryBytes: p.HistoryBytes, Bytes: p.Bytes, Tokens: p.Tokens, LimitTokens: p.LimitTokens, Fits: p.Fits,
		FixedBytes: fixedBytes(e.system(h.Recall), e.Tools.Specs()),
		Largest:    []session.Contributor{},
	}
	sent := map[int64]int64{}
	f, _ := e.fit(h, true)
	for i := range f.Items {
		sent[f.Items[i].N] = ItemBytes(&f.Items[i])
	}
	for i := range h.Items {
		item := &h.Items[i]
		c := session.Contributor{N: item.N, Kind: item.Kind, Bytes: ItemBytes(item), SentBytes: sent[item.N]}
		switch {
		case item.ToolCall != nil:
			c.Tool = item.ToolCall.Tool
		case item.ToolResult != nil:
			c.Tool = item.ToolResult.Tool
		}
		next.Largest = append(next.Largest, c)
	}
	slices.SortStableFunc(next.Largest, func(a, b session.Contributor) int {
		return cmp.Or(cmp.Compare(b.SentBytes, a.SentBytes), cmp.Compare(b.Bytes, a.Bytes))
	})
	next.Largest = next.Largest[:min(len(next.Largest), maxContributors)]
	return next
}
