package worker

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"loadline/internal/session"
)

const (
	// truncatedNote ends a cut content. The two line breaks belong to neither side.
	truncatedNote = "\n\n[truncated: %d bytes dropped, refine your query]"
	// maxSummaryBytes bounds the summary that a tool may write.
	maxSummaryBytes = 4096
)

// Settle is the chokepoint: the last thing between the output of a call, after all
// interceptors, and the history. It cleans the texts, then cuts the content to at
// most limit bytes. A summary that is blank or too long is replaced, and broken
// says so. Settling a settled content again changes nothing.
//
// Of a content that is cut, keep is given the whole before the cut: what the limit
// measures, or the Full of a tool that chose from a longer output. What it returns
// goes into the result, and changes nothing of its texts. A nil keep keeps nothing.
func Settle(callN int64, toolName string, out session.Output, limit int, keep func(whole string) session.KeptOutput) (result session.ToolResult, broken bool) {
	result = session.ToolResult{CallN: callN, Tool: toolName, Failed: out.Failed, Summary: session.Clean(out.Summary)}
	content := ""
	if out.Content != nil {
		content = session.Clean(*out.Content)
	}
	originalBytes := int64(len(content)) + out.Unseen
	if strings.TrimSpace(result.Summary) == "" || len(result.Summary) > maxSummaryBytes {
		result.Summary = fmt.Sprintf("%s: %d bytes", toolName, originalBytes)
		broken = true
	}
	if out.Content == nil && out.Unseen == 0 {
		return result, broken
	}
	capped, dropped := truncate(content, out.Unseen, limit)
	result.Content = &capped
	if dropped > 0 {
		result.KeptOutput = kept(content, out.Full, keep)
		result.Truncated = &session.Truncated{
			Limit:         limit,
			OriginalBytes: originalBytes,
			KeptBytes:     originalBytes - dropped,
			DroppedBytes:  dropped,
		}
	}
	return result, broken
}

// kept keeps a whole output, unless there is nothing of it.
func kept(content, full string, keep func(string) session.KeptOutput) *session.KeptOutput {
	if full != "" {
		content = session.Clean(full)
	}
	if keep == nil || content == "" {
		return nil
	}
	k := keep(content)
	return &k
}

// truncate cuts s to at most limit bytes, on a rune boundary, and ends it with a
// note that tells the model how many bytes it does not see: those cut here and the
// unseen ones that its tool left out. It returns s unchanged and 0 when s fits and
// nothing is unseen. The limit is at least manifest.MinLimitBytes, so a note fits.
func truncate(s string, unseen int64, limit int) (capped string, dropped int64) {
	if len(s) <= limit && unseen == 0 {
		return s, 0
	}
	longestNote := len(fmt.Sprintf(truncatedNote, int64(len(s))+unseen))
	cut := min(len(s), limit-longestNote)
	for cut > 0 && cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut--
	}
	dropped = int64(len(s)-cut) + unseen
	return s[:cut] + fmt.Sprintf(truncatedNote, dropped), dropped
}
