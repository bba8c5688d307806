package http

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"loadline/internal/session"
)

// outputTimeout is how long the sending of an output may take. A client that is
// slower goes on with a range.
const outputTimeout = 5 * time.Minute

// getOutput sends the whole output of a result that was cut, or ranges of it. It
// never changes, so its number and size tell it from any other.
func (s *Server) getOutput(w http.ResponseWriter, r *http.Request) error {
	item, err := s.item(r)
	if err != nil {
		return err
	}
	kept, err := keptOutput(item)
	if err != nil {
		return err
	}
	output, err := s.config.Outputs.Output(item.SessionID, item.N, kept.Bytes)
	if err != nil {
		return err
	}
	defer output.Close()
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="output-%d.txt"`, item.N))
	h.Set("ETag", fmt.Sprintf(`"%d-%d"`, item.N, kept.Bytes))
	if !strings.HasPrefix(r.Header.Get("Range"), "bytes=") {
		r.Header.Del("Range") // of a unit that nobody knows: RFC 9110 has it ignored
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(outputTimeout)) // else the usual time holds
	sender := &contentWriter{ResponseWriter: w}
	http.ServeContent(sender, r, "", time.Time{}, output)
	return sender.refusal(r, kept.Bytes)
}

// keptOutput is what an item says of its whole output.
func keptOutput(item session.Item) (*session.KeptOutput, error) {
	switch {
	case item.ToolResult == nil:
		return nil, newProblem(codeNotFound, "this item is no tool result: only these have outputs")
	case item.ToolResult.KeptOutput == nil:
		return nil, newProblem(codeNotFound, "nothing more than the content is kept of this result: it was not cut, or the server kept no outputs")
	case item.ToolResult.KeptOutput.Error != "":
		return nil, newProblem(codeNotFound, "the whole output was not kept: kept_output of the result says why")
	}
	return item.ToolResult.KeptOutput, nil
}

// contentWriter holds back what http.ServeContent says when it refuses, so that it
// is answered like every refusal.
type contentWriter struct {
	http.ResponseWriter
	refused code // "" while it does not
}

func (w *contentWriter) WriteHeader(status int) {
	switch status {
	case http.StatusPreconditionFailed:
		w.refused = codePreconditionFailed
	case http.StatusRequestedRangeNotSatisfiable:
		w.refused = codeRangeNotSatisfiable
	default:
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *contentWriter) Write(b []byte) (int, error) {
	if w.refused != "" {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// refusal is the problem to answer with; nil when the content was sent.
func (w *contentWriter) refusal(r *http.Request, keptBytes int64) error {
	if w.refused == "" {
		return nil
	}
	w.Header().Del("Content-Disposition")
	if w.refused == codeRangeNotSatisfiable {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", keptBytes))
	}
	_ = setHeaders(w, r) // ServeContent takes some away
	return newProblem(w.refused, "")
}
