// Package anthropic asks models over Anthropic's Messages API: the service itself,
// and gateways and local servers that speak its protocol.
package anthropic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"loadline/internal/llm"
	"loadline/internal/session"
)

const (
	defaultIdleTimeout     = 2 * time.Minute
	defaultMaxOutputTokens = 8192
	// compatibleVersion is the API version that others than the service itself know.
	compatibleVersion = "2023-06-01"
	// endWait is how long the end of a stream is waited for after its last event,
	// so that its connection can be used again.
	endWait = 50 * time.Millisecond
)

// Auth is the header in which the key is sent.
type Auth string

// The ways to send the key.
const (
	AuthKey    Auth = "x-api-key" // x-api-key: KEY
	AuthBearer Auth = "bearer"    // Authorization: Bearer KEY
)

// Config says which model to ask, and where. Name is mandatory.
type Config struct {
	BaseURL string // with or without /v1 at its end; empty: the service itself
	Name    string // of the model
	Key     string // sent as Auth says; empty: no key is sent, whatever the environment holds

	// APIVersion and Auth default to 2023-06-01 and AuthKey with a BaseURL, which is
	// what compatible servers know, else to the SDK's own version and AuthBearer.
	APIVersion string
	Auth       Auth

	MaxOutputTokens int64         // of one answer; 0: 8192
	IdleTimeout     time.Duration // between two pieces of a stream; 0: 2 minutes
}

// Provider asks one model. It is safe for concurrent use.
type Provider struct {
	client          sdk.Client
	connections     *http.Client
	model           string
	key             string
	badURL          bool
	maxOutputTokens int64
	idleTimeout     time.Duration
}

var _ llm.Provider = (*Provider)(nil)

// New makes a provider. It sends nothing yet; with a BaseURL that is no URL of a
// service each Ask fails.
func New(c Config) *Provider {
	if c.MaxOutputTokens == 0 {
		c.MaxOutputTokens = defaultMaxOutputTokens
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = defaultIdleTimeout
	}
	connections := llm.NewClient(c.IdleTimeout, c.Key)
	return &Provider{
		client:          sdk.NewClient(append(options(c), option.WithHTTPClient(connections))...),
		connections:     connections,
		model:           c.Name,
		key:             c.Key,
		badURL:          c.BaseURL != "" && !isServiceURL(c.BaseURL),
		maxOutputTokens: c.MaxOutputTokens,
		idleTimeout:     c.IdleTimeout,
	}
}

func options(c Config) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithMaxRetries(0),
	}
	if c.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(strings.TrimSuffix(strings.TrimRight(c.BaseURL, "/"), "/v1")))
		if c.APIVersion == "" {
			c.APIVersion = compatibleVersion
		}
		if c.Auth == "" {
			c.Auth = AuthKey
		}
	}
	if c.APIVersion != "" {
		opts = append(opts, option.WithHeader("anthropic-version", c.APIVersion))
	}
	switch {
	case c.Key == "":
	case c.Auth == AuthKey:
		opts = append(opts, option.WithHeader("x-api-key", c.Key))
	default:
		opts = append(opts, option.WithAPIKey(c.Key))
	}
	return opts
}

func isServiceURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// Close closes the connections that are kept for reuse.
func (p *Provider) Close() { p.connections.CloseIdleConnections() }

// Name returns "anthropic".
func (p *Provider) Name() string { return "anthropic" }

// Model returns the model's name.
func (p *Provider) Model() string { return p.model }

// Ask does what llm.Provider says. The stop reason model_context_window_exceeded
// is an error of ClassShrink.
func (p *Provider) Ask(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Answer, error) {
	if p.badURL {
		return llm.Answer{}, &llm.Error{Class: llm.ClassFail, Err: errors.New("base_url is not the http or https URL of a service")}
	}
	body, err := session.EncodeJSON(p.translate(r))
	if err != nil {
		return llm.Answer{}, &llm.Error{Class: llm.ClassFail, Err: fmt.Errorf("encode the request: %w", err)}
	}
	x := llm.NewExchange(ctx, p.idleTimeout)
	defer x.Close()
	var resp *http.Response
	err = p.client.Execute(x.Context(), http.MethodPost, "v1/messages", body, &resp)
	if err != nil {
		return llm.Answer{}, x.Error(err)
	}
	defer func() { _ = resp.Body.Close() }() // what was to be read has been
	x.Receive(resp.Body)
	answer, err := read(x, emit, p.key)
	if err != nil {
		return llm.Answer{}, x.Error(err)
	}
	return answer, nil
}
