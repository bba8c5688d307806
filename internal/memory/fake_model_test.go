package memory

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"loadline/internal/llm"
	"loadline/internal/session"
)

// model is a scripted model in the test's own process.
type model struct {
	mu       sync.Mutex // guards the fields below
	script   []reply
	requests []llm.Request
}

// reply is one answer. With hold it waits until that is closed.
type reply struct {
	answer llm.Answer
	err    error
	hold   <-chan struct{}
	make   func(llm.Request) reply
}

func (*model) Name() string { return "fake" }

func (*model) Model() string { return "fake" }

func (m *model) Ask(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Answer, error) {
	next := m.next(r)
	for next.make != nil {
		next = next.make(r)
	}
	if next.hold != nil {
		select {
		case <-next.hold:
		case <-ctx.Done():
			return llm.Answer{}, context.Cause(ctx)
		}
	}
	if next.err != nil {
		return llm.Answer{}, next.err
	}
	for i, b := range next.answer.Blocks {
		emit(llm.Delta{Block: i, Kind: b.Kind, Tool: b.Tool, Text: b.Text})
	}
	return next.answer, nil
}

func (m *model) next(r llm.Request) reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, r)
	if len(m.script) == 0 {
		return submits() // the model finds nothing
	}
	next := m.script[0]
	m.script = m.script[1:]
	return next
}

func (m *model) add(replies ...reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.script = append(m.script, replies...)
}

// asked are the texts that the model was given, the first message of each request.
func (m *model) asked() (texts []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.requests {
		texts = append(texts, r.Items[0].UserMessage.Text)
	}
	return texts
}

func says(text string) *talker { return &talker{text} }

// talker answers everything alike.
type talker struct{ text string }

func (*talker) Name() string { return "fake" }

func (*talker) Model() string { return "fake" }

func (t *talker) Ask(_ context.Context, _ llm.Request, emit func(llm.Delta)) (llm.Answer, error) {
	emit(llm.Delta{Kind: session.KindAssistantMessage, Text: t.text})
	return llm.Answer{Blocks: []llm.Block{{Kind: session.KindAssistantMessage, Text: t.text}}, Stop: llm.StopEnd}, nil
}

func prose(text string) reply {
	return reply{answer: llm.Answer{Blocks: []llm.Block{{Kind: session.KindAssistantMessage, Text: text}}, Stop: llm.StopEnd}}
}

func calls(name, arguments string) reply {
	return reply{answer: llm.Answer{
		Blocks: []llm.Block{{Kind: session.KindToolCall, Tool: name, Text: arguments}}, Stop: llm.StopEnd,
		Usage: session.Usage{InputTokens: 100, OutputTokens: 10},
	}}
}

// submits submits one fact for each of the item numbers.
func submits(evidence ...int64) reply { return calls(SubmitTool, submissionOf(evidence...)) }

func submissionOf(evidence ...int64) string {
	records := []string{}
	for _, n := range evidence {
		records = append(records, fmt.Sprintf(`{"kind":"fact","claim":"item %d says so","why":"it matters","evidence":[%d]}`, n, n))
	}
	return `{"records":[` + strings.Join(records, ",") + `]}`
}

func refuses(class llm.Class) reply {
	return reply{err: &llm.Error{Class: class, Status: 500, Err: fmt.Errorf("refused: %s", class)}}
}
