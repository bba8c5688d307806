// Package openai asks models over the Chat Completions protocol: OpenAI's own,
// and those of every compatible server, such as Ollama, vLLM, llama.cpp,
// OpenRouter or Groq.
//
// It writes requests and reads streams itself: a client library takes half of the
// time that a turn on a long history may take, has no bound on a line, gives up
// after 300 keep-alive lines and loses errors that follow one.
package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"loadline/internal/llm"
)

const (
	name               = "openai"
	defaultBaseURL     = "https://api.openai.com/v1"
	defaultIdleTimeout = 2 * time.Minute
	// usageWait bounds the wait for the usage after the model has finished, and
	// drainWait the one for the end of the body, which frees the connection.
	usageWait = time.Second
	drainWait = 50 * time.Millisecond
)

// Config says which model to ask, and where.
type Config struct {
	BaseURL string // up to and without /chat/completions; empty: OpenAI's
	Name    string // of the model
	Key     string // sent as a bearer token; empty: none
	// MaxOutputTokens bounds one answer; 0: the service's own limit.
	MaxOutputTokens int64
	IdleTimeout     time.Duration // between two pieces of a stream, and before the first; 0: 2 minutes
}

// Provider implements llm.Provider.
type Provider struct {
	url    string
	model  string
	key    string
	idle   time.Duration
	client *http.Client

	// These bound an answer: compatible servers know the first name, OpenAI's newer
	// models only the second. One of them is 0.
	maxTokens, maxCompletionTokens int64

	lastBeginning atomic.Pointer[beginning] // nil before the first request

	// withoutReasoning is set once the service has refused to be sent reasoning.
	withoutReasoning atomic.Bool
}

// New makes a provider. Whether the service exists shows when it is asked.
func New(c Config) *Provider {
	if c.BaseURL == "" {
		c.BaseURL = defaultBaseURL
	}
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = defaultIdleTimeout
	}
	maxTokens, maxCompletionTokens := c.MaxOutputTokens, int64(0)
	if c.BaseURL == defaultBaseURL {
		maxTokens, maxCompletionTokens = 0, c.MaxOutputTokens
	}
	return &Provider{
		maxTokens: maxTokens, maxCompletionTokens: maxCompletionTokens,
		url:    strings.TrimRight(c.BaseURL, "/") + "/chat/completions",
		model:  c.Name,
		key:    c.Key,
		idle:   c.IdleTimeout,
		client: llm.NewClient(c.IdleTimeout, c.Key),
	}
}

// Close closes the connections that are kept for reuse.
func (p *Provider) Close() { p.client.CloseIdleConnections() }

// Name implements llm.Provider.
func (p *Provider) Name() string { return name }

// Model implements llm.Provider.
func (p *Provider) Model() string { return p.model }

// Ask implements llm.Provider. When the service refuses the reasoning that it was
// sent, the error is of ClassRetry, and no later request holds any.
func (p *Provider) Ask(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Answer, error) {
	body, withReasoning, err := p.encode(r)
	if err != nil {
		return llm.Answer{}, &llm.Error{Class: llm.ClassFail, Err: fmt.Errorf("encode the request: %w", err)}
	}
	x := llm.NewExchange(ctx, p.idle)
	defer x.Close()
	resp, err := p.send(x.Context(), body)
	if err != nil {
		err = x.Error(err)
		if refused, ok := errors.AsType[*llm.Error](err); ok && withReasoning && refusesReasoning(refused) {
			p.withoutReasoning.Store(true)
			refused.Class = llm.ClassRetry
		}
		return llm.Answer{}, err
	}
	defer resp.Body.Close()
	x.Receive(resp.Body)
	s := stream{assembly: llm.Assembly{Emit: emit}, key: p.key}
	for {
		data, err := x.Next()
		switch {
		case err != nil && s.stop != "":
			return s.assembly.Answer(s.stop, s.usage), nil
		case err != nil:
			return llm.Answer{}, x.Error(err)
		}
		finished := s.stop != "" // then the answer is whole, and what follows may break
		switch err := s.take(x, data); {
		case err != nil && !finished:
			return llm.Answer{}, x.Error(err)
		case s.assembly.Full():
			return s.assembly.Answer(llm.StopLength, s.usage), nil
		}
	}
}

func (p *Provider) send(ctx context.Context, body []byte) (*http.Response, error) {
	if u, err := url.Parse(p.url); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &llm.Error{Class: llm.ClassFail, Err: errors.New("base_url is not the http or https URL of a service")}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return nil, &llm.Error{Class: llm.ClassFail, Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "loadline")
	if p.key != "" {
		req.Header.Set("Authorization", "Bearer "+p.key)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	if kind := resp.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/html") {
		resp.Body.Close()
		return nil, &llm.Error{Class: llm.ClassFail, Err: fmt.Errorf("the answer is %s, no event stream: check base_url", kind)}
	}
	return resp, nil
}

// refusesReasoning tells the refusal of a field that most services take and some,
// as Groq and Cerebras, call unsupported.
func refusesReasoning(e *llm.Error) bool {
	return e.Class == llm.ClassFail && (e.Status == http.StatusBadRequest || e.Status == http.StatusUnprocessableEntity) &&
		strings.Contains(e.Err.Error(), "reasoning")
}
