package llm

import (
	"strconv"
	"strings"

	"loadline/internal/session"
)

// CallID is the id by which providers are told of the call with item number n.
func CallID(n int64) string { return string(AppendCallID(nil, n)) }

// AppendCallID appends that id.
func AppendCallID(b []byte, n int64) []byte {
	return strconv.AppendInt(append(b, "call_"...), n, 10)
}

// ResultText is a tool's result as a model is sent it: the summary, a blank line
// and the content; the summary alone when the content is absent or blank.
func ResultText(r session.ToolResult) string { return strings.Join(ResultTexts(r), ParagraphBreak) }

// ResultTexts is what ResultText joins.
func ResultTexts(r session.ToolResult) []string {
	if r.Content == nil || strings.TrimSpace(*r.Content) == "" {
		return []string{r.Summary}
	}
	return []string{r.Summary, *r.Content}
}

// ParagraphBreak stands between texts that one message holds.
const ParagraphBreak = "\n\n"
