package anthropic

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
)

func TestExam(t *testing.T) {
	llmtest.Exam(t, func(baseURL string) llm.Provider {
		return New(Config{BaseURL: baseURL, Name: "m", Key: llmtest.Key, IdleTimeout: llmtest.IdleTimeout})
	})
}

// sent is what shows whom a request is for and from.
type sent struct{ Path, Version, Key, Authorization string }

func TestRequestGoesWhereTheConfigSays(t *testing.T) {
	// What the environment holds is for others.
	t.Setenv("ANTHROPIC_API_KEY", "sk-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "anthropic-version: of the environment")
	tests := []struct {
		name   string
		config Config // with the model's URL put before BaseURL
		want   sent
	}{
		{"compatible server", Config{Key: "k"}, sent{"/v1/messages", compatibleVersion, "k", ""}},
		{"with a slash", Config{BaseURL: "/", Key: "k"}, sent{"/v1/messages", compatibleVersion, "k", ""}},
		{"with a version in the URL", Config{BaseURL: "/v1", Key: "k"}, sent{"/v1/messages", compatibleVersion, "k", ""}},
		{"below a path", Config{BaseURL: "/of/v1/", Key: "k"}, sent{"/of/v1/messages", compatibleVersion, "k", ""}},
		{"without a key", Config{}, sent{"/v1/messages", compatibleVersion, "", ""}},
		{"all set", Config{Key: "k", APIVersion: "2026-10-21", Auth: AuthBearer}, sent{"/v1/messages", "2026-10-21", "", "Bearer k"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got sent
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = sent{r.URL.Path, r.Header.Get("Anthropic-Version"), r.Header.Get("X-Api-Key"), r.Header.Get("Authorization")}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte(events(messageStart, stopFor("end_turn"), messageStop)))
			}))
			defer server.Close()
			tt.config.BaseURL, tt.config.Name = server.URL+tt.config.BaseURL, "m"
			p := New(tt.config)
			defer p.Close()
			if _, err := p.Ask(t.Context(), hello(), func(llm.Delta) {}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServiceItselfIsAskedInItsOwnWay(t *testing.T) {
	p := New(Config{Name: "m", Key: "k"})
	defer p.Close()
	var got sent
	p.connections.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		got = sent{r.URL.String(), r.Header.Get("Anthropic-Version"), r.Header.Get("X-Api-Key"), r.Header.Get("Authorization")}
		return nil, http.ErrServerClosed
	})
	_, err := p.Ask(t.Context(), hello(), func(llm.Delta) {})
	if classOf(err) != llm.ClassRetry {
		t.Errorf("a connection that fails gives %v, want class retry", err)
	}
	want := sent{"https://api.anthropic.com/v1/messages", "2026-10-21", "", "Bearer k"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestAskFailsOnWhatIsNoURL(t *testing.T) {
	for _, base := range []string{"localhost:80", "/v1", "ftp://host", "http://", "http://[", "http://a b"} {
		p := New(Config{BaseURL: base, Name: "m"})
		if _, err := p.Ask(t.Context(), hello(), func(llm.Delta) {}); classOf(err) != llm.ClassFail {
			t.Errorf("base_url %q gives %v, want class fail", base, err)
		}
	}
}

func TestConnectionIsUsedAgainWhenItsEndComesSoon(t *testing.T) {
	var connections sync.Map
	model := llmtest.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections.Store(r.RemoteAddr, true)
		model.ServeHTTP(w, r)
		<-time.After(time.Millisecond) // so the end of the stream comes on its own
	}))
	defer server.Close()
	p := New(Config{BaseURL: server.URL, Name: "m"})
	defer p.Close()
	const requests = 5
	for range requests {
		if _, err := p.Ask(t.Context(), hello(), func(llm.Delta) {}); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	connections.Range(func(any, any) bool { n++; return true })
	if n == requests {
		t.Errorf("each of %d requests took a connection of its own", n)
	}
}

func TestAnswerDoesNotWaitForTheEndOfItsConnection(t *testing.T) {
	model := llmtest.New(llmtest.Step{Text: []string{"Hello"}, Hang: true})
	if err := model.Start(); err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	p := New(Config{BaseURL: model.URL(), Name: "m", IdleTimeout: time.Minute})
	defer p.Close()
	started := time.Now()
	if _, err := p.Ask(t.Context(), hello(), func(llm.Delta) {}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("the answer took %v", took)
	}
}

func hello() llm.Request { return llm.Request{Items: []session.Item{user("hello")}} }
