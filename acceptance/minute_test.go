package acceptance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loadline/internal/llm"
	"loadline/internal/session"
	"loadline/internal/tool"
)

// strictMinute is a service that takes no more input tokens in any 60 seconds than it
// allows, and counts more for a byte than anybody assumes of it. Asked with a result
// at the end it answers; else it calls the tool Read.
type strictMinute struct {
	allowed       int64
	tokensPerByte float64

	mu      sync.Mutex // guards the fields below
	taken   []taken
	refused []time.Time
}

type taken struct {
	at     time.Time
	tokens int64
}

func (*strictMinute) Name() string  { return "openai" }
func (*strictMinute) Model() string { return "strict" }

// Ask implements llm.Provider.
func (m *strictMinute) Ask(_ context.Context, r llm.Request, emit func(llm.Delta)) (llm.Answer, error) {
	tokens := m.count(r)
	if err := m.take(tokens); err != nil {
		return llm.Answer{}, err
	}
	block := llm.Block{Kind: session.KindToolCall, Tool: "Read", Text: "{}"}
	if r.Items[len(r.Items)-1].ToolResult != nil {
		block = llm.Block{Kind: session.KindAssistantMessage, Text: "read"}
	}
	emit(llm.Delta{Kind: block.Kind, Tool: block.Tool, Text: block.Text})
	return llm.Answer{Blocks: []llm.Block{block}, Stop: llm.StopEnd, Usage: session.Usage{InputTokens: tokens, OutputTokens: 5}}, nil
}

func (m *strictMinute) count(r llm.Request) int64 {
	bytes := len(r.System)
	for _, spec := range r.Tools {
		bytes += len(spec.Name) + len(spec.Description) + len(spec.Parameters)
	}
	for _, item := range r.Items {
		switch {
		case item.UserMessage != nil:
			bytes += len(item.UserMessage.Text)
		case item.AssistantMessage != nil:
			bytes += len(item.AssistantMessage.Text)
		case item.ToolResult != nil && item.ToolResult.Content != nil:
			bytes += len(*item.ToolResult.Content)
		}
	}
	return int64(float64(bytes) * m.tokensPerByte)
}

func (m *strictMinute) take(tokens int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	within := tokens
	for _, t := range m.taken {
		if time.Since(t.at) < time.Minute {
			within += t.tokens
		}
	}
	if within > m.allowed {
		m.refused = append(m.refused, time.Now())
		return &llm.Error{Class: llm.ClassRetry, Status: http.StatusTooManyRequests, RetryAfter: 10 * time.Second, Err: errors.New("rate limit reached")}
	}
	m.taken = append(m.taken, taken{time.Now(), tokens})
	return nil
}

// Four sessions on one key, which allows 30,000 tokens in each minute however it is
// cut: after the first refusal, by which the server learns how the service counts,
// nothing comes too early, and the minutes are used.
func TestD07SessionsShareAStrictMinute(t *testing.T) {
	for _, tokensPerByte := range []float64{0.3, 0.56, 0.8} {
		t.Run(fmt.Sprintf("%.2f tokens a byte", tokensPerByte), func(t *testing.T) {
			t.Parallel()
			service := &strictMinute{allowed: 30_000, tokensPerByte: tokensPerByte}
			serveStrictMinute(t, service, func(w *world) {
				begun := time.Now()
				var sessions sync.WaitGroup
				for range 4 {
					id := w.newSession()
					sessions.Go(func() {
						for range 12 {
							if turn := w.say(id, "read on"); turn.State != session.TurnCompleted {
								t.Errorf("turn: %s %+v", turn.State, turn.Error)
							}
						}
					})
				}
				sessions.Wait()
				service.judge(t, begun)
			})
		})
	}
}

func (m *strictMinute) judge(t *testing.T, begun time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.refused) > 1 {
		t.Errorf("%d requests came too early, the last of them after %s", len(m.refused), m.refused[len(m.refused)-1].Sub(begun))
	}
	sum := int64(0)
	for _, t := range m.taken {
		sum += t.tokens
	}
	took := time.Since(begun)
	if took < 10*time.Minute || float64(sum)/took.Minutes() < float64(m.allowed)/2 { // no two of its requests fit into a minute at the end
		t.Errorf("%d tokens in %s: the minutes are not used", sum, took)
	}
}

func serveStrictMinute(t *testing.T, service llm.Provider, test func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		network := newPipes()
		transport := &http.Transport{DialContext: network.dial}
		t.Cleanup(transport.CloseIdleConnections)
		test(start(t, setup{
			manifest: perMinute30k, tools: []tool.Tool{prints("Read", strings.Repeat("one line\n", 1000))}, listener: network,
			http: &http.Client{Transport: transport}, provider: service,
		}))
	})
}
