// Package llmtest is a scripted model with an HTTP face for two protocols, OpenAI
// Chat Completions and Anthropic Messages, streamed answers only; and an exam that
// every provider passes. The model is as strict as the real ones: it refuses, in
// their form, a history that they would refuse.
package llmtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"loadline/internal/session"
)

const (
	maxBodyBytes = 64 << 20
	keptRequests = 4096
)

// Server is the model. Set its fields before it serves; its methods are safe for
// concurrent use.
type Server struct {
	// MaxBodyBytes makes it refuse longer requests as too long for the model; 0
	// is no limit but one of 64 MiB.
	MaxBodyBytes int
	// Limits are in tokens.
	Limits Limits
	// Otherwise is the answer when the script has run out.
	Otherwise Step

	mu       sync.Mutex // guards the fields below
	script   []Step
	requests []Request
	problems []string
	served   int
	limited  int
	bucket   *rate.Limiter // nil until the first request that Limits.PerMinute counts

	listener net.Listener
	server   *http.Server
	handlers sync.WaitGroup
}

// New makes a model that answers with these steps, one for each request that it
// does not refuse, and then with Otherwise.
func New(script ...Step) *Server {
	return &Server{script: script, Otherwise: Step{Text: []string{"The script ", "has run out."}}}
}

// Start serves on a free loopback port until Close.
func (s *Server) Start() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start the model: %w", err)
	}
	s.listener = listener
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.handlers.Go(func() {
		_ = s.server.Serve(listener) // it ends with Close
	})
	return nil
}

// URL is the base URL of a started model, for providers of both protocols. A path
// of any form may follow it before /chat/completions or /messages.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Close drops all connections and waits until nothing of the model runs.
func (s *Server) Close() {
	_ = s.server.Close() // what it could report is of no use to anybody
	s.handlers.Wait()
}

// Add appends steps to the script.
func (s *Server) Add(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, steps...)
}

// Requests lists the requests seen, refused ones too, oldest first; of more than
// 4096 the latest.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Problems lists why requests were refused: for their form, not for their length.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.handlers.Add(1)
	defer s.handlers.Done()
	var face face
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		face = chat{}
	case strings.HasSuffix(r.URL.Path, "/messages"):
		face = messages{}
	}
	if face == nil || r.Method != http.MethodPost {
		http.Error(w, "POST to …/chat/completions or …/messages", http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request := Request{Header: r.Header, Body: body, face: face}
	problem := face.parse(&request)
	refused := s.refuse(request)
	step, n := s.next(request, problem, refused != nil)
	switch {
	case refused != nil:
		play(r.Context(), w, face, *refused, answerFacts{})
	case problem != nil:
		writeError(w, face, http.StatusBadRequest, problem.Error())
	default:
		for step.Reply != nil {
			step = step.Reply(request)
		}
		if s.Limits.set() && step.Usage == (session.Usage{}) {
			step.Usage.InputTokens = request.Tokens(s.Limits.TokensPerByte)
		}
		play(r.Context(), w, face, step, answerFacts{n: n, model: request.Model})
	}
}

// next notes a request and takes the step that answers it, unless it is refused.
func (s *Server) next(r Request, problem error, refused bool) (step Step, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == keptRequests {
		s.requests = slices.Delete(s.requests, 0, keptRequests/2)
	}
	s.requests = append(s.requests, r)
	s.served++
	switch {
	case refused:
	case problem != nil:
		s.problems = append(s.problems, problem.Error())
	case len(s.script) > 0:
		step, s.script = s.script[0], s.script[1:]
	default:
		step = s.Otherwise
	}
	return step, s.served
}

// face is how one protocol looks on the wire.
type face interface {
	// parse fills the neutral fields of r from its body, or says what is wrong.
	parse(r *Request) error
	// frames are the parts of a streamed answer, before the pieces of an endless
	// text and after them.
	frames(step Step, facts answerFacts) (before, after []frame)
	// piece is a frame with a piece of text.
	piece(text string, facts answerFacts) []byte
	tooLong(size, maximum int64, unit string) string
	errorBody(status int, message string) []byte
}

func writeError(w http.ResponseWriter, f face, status int, message string) {
	body := []byte(message)
	if !strings.HasPrefix(message, "{") {
		body = f.errorBody(status, message)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}

// wait holds until gate is closed or gives a value; nil holds nothing. It reports
// whether the client is still there.
func wait(ctx context.Context, gate <-chan struct{}) bool {
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-ctx.Done():
		return false
	}
}
