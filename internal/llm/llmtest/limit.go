package llmtest

import (
	"fmt"
	"math"
	"net/http"
	"time"

	"golang.org/x/time/rate"
)

const (
	// tokensPerByte is the ratio of long lists of paths.
	tokensPerByte = 0.56
	messageTokens = 4 // of a message, beside its texts
)

// Limits are how many tokens the model takes. The zero value is no limit.
type Limits struct {
	Window    int64 // of one request; a larger one is refused as too long
	PerMinute int64 // of all requests: a bucket that is full at first and fills again evenly
	// TokensPerByte is how the model counts texts; 0: 0.56. Answers whose step has no
	// usage report what was counted.
	TokensPerByte float64
}

func (l Limits) set() bool { return l != Limits{} }

// Tokens is how many tokens a request has for a model that counts so many for a byte
// of text; 0: 0.56.
func (r Request) Tokens(perByte float64) int64 {
	if perByte == 0 {
		perByte = tokensPerByte
	}
	bytes := len(r.System)
	for _, m := range r.Messages {
		bytes += len(m.Text) + len(m.Reasoning)
		for _, call := range m.Calls {
			bytes += len(call.Tool) + len(call.Arguments)
		}
		for _, result := range m.Results {
			bytes += len(result.Text)
		}
	}
	return int64(math.Ceil(float64(bytes)*perByte)) + messageTokens*int64(len(r.Messages))
}

// refuse is the answer to a request that is above a limit, in the words of real
// services; nil when there is room for it, which is then taken.
func (s *Server) refuse(r Request) *Step {
	if s.MaxBodyBytes > 0 && len(r.Body) > s.MaxBodyBytes {
		return &Step{Status: http.StatusBadRequest, Body: r.face.tooLong(int64(len(r.Body)), int64(s.MaxBodyBytes), "bytes")}
	}
	l, tokens := s.Limits, r.Tokens(s.Limits.TokensPerByte)
	switch {
	case l.Window > 0 && tokens > l.Window:
		return &Step{Status: http.StatusBadRequest, Body: r.face.tooLong(tokens, l.Window, "tokens")}
	case l.PerMinute > 0 && tokens > l.PerMinute:
		return &Step{Status: http.StatusTooManyRequests, Body: fmt.Sprintf("Request too large for %s on tokens per min (TPM): Limit %d, Requested %d. "+
			"The input or output tokens must be reduced in order to run successfully.", r.Model, l.PerMinute, tokens)}
	case l.PerMinute > 0:
		if wait := s.minute(tokens); wait > 0 {
			return &Step{
				Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {fmt.Sprintf("%.3f", wait.Seconds())}},
				Body: fmt.Sprintf("Rate limit reached for %s on tokens per min (TPM): Limit %d, Requested %d. Please try again in %.3fs.",
					r.Model, l.PerMinute, tokens, wait.Seconds()),
			}
		}
	}
	return nil
}

// minute takes tokens out of the bucket, or says when they will be there.
func (s *Server) minute(tokens int64) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bucket == nil {
		s.bucket = rate.NewLimiter(rate.Limit(float64(s.Limits.PerMinute)/time.Minute.Seconds()), int(s.Limits.PerMinute))
	}
	r := s.bucket.ReserveN(time.Now(), int(tokens))
	wait := r.Delay()
	if wait > 0 {
		r.Cancel()
		s.limited++
	}
	return wait
}

// Limited is how many requests came too early for the minute's tokens.
func (s *Server) Limited() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limited
}
