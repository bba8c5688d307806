package openai_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm"
	"loadline/internal/llm/llmtest"
	"loadline/internal/llm/openai"
	"loadline/internal/session"
)

// chunks makes a stream of deltas, and an end.
func chunks(end string, deltas ...string) string {
	var b strings.Builder
	for _, delta := range deltas {
		fmt.Fprintf(&b, "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", delta)
	}
	return b.String() + end
}

const (
	stop   = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	usage  = `{"prompt_tokens":20,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":16}}`
	counts = "\"usage\":" + usage
)

func said(text string) llm.Block {
	return llm.Block{Kind: session.KindAssistantMessage, Text: text}
}

func called(tool, arguments string) llm.Block {
	return llm.Block{Kind: session.KindToolCall, Tool: tool, Text: arguments}
}

func thought(text, signature string) llm.Block {
	return llm.Block{Kind: session.KindReasoning, Text: text, Signature: signature}
}

// shapes are streams as various servers send them.
func shapes() []struct {
	name, stream string
	want         llm.Answer
} {
	counted := session.Usage{InputTokens: 20, CachedInputTokens: 16, OutputTokens: 5}
	blocks := func(b ...llm.Block) llm.Answer { return llm.Answer{Blocks: b, Stop: llm.StopEnd} }
	call := func(fields string) string { return `{"tool_calls":[{` + fields + `}]}` }
	return []struct {
		name, stream string
		want         llm.Answer
	}{
		{"llama.cpp reasoning", chunks(stop, `{"role":"assistant","content":null}`, `{"reasoning_content":"We"}`, `{"reasoning_content":" think"}`, `{"content":"Hi"}`),
			blocks(thought("We think", ""), said("Hi"))},
		{"Groq reasoning", chunks(stop, `{"reasoning":"We"}`, `{"reasoning":" think","channel":"analysis"}`, `{"content":"Hi"}`),
			blocks(thought("We think", "reasoning"), said("Hi"))},
		{"reasoning under both names", chunks(stop, `{"reasoning":"We","reasoning_content":"We"}`, `{"content":"Hi"}`),
			blocks(thought("We", ""), said("Hi"))},
		{"reasoning between text", chunks(stop, `{"content":"a"}`, `{"reasoning_content":"b"}`, `{"content":"c"}`),
			blocks(said("a"), thought("b", ""), said("c"))},
		{"whole call at once", chunks(stop, call(`"index":0,"id":"a","function":{"name":"Read","arguments":"{\"p\":1}"}`)),
			blocks(called("Read", `{"p":1}`))},
		{"two calls in a chunk", chunks(stop, `{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":"1"}},{"index":1,"id":"b","function":{"name":"Glob","arguments":"2"}}]}`),
			blocks(called("Read", "1"), called("Glob", "2"))},
		{"interleaved", chunks(stop,
			call(`"index":0,"id":"a","function":{"name":"Read","arguments":""}`), call(`"index":1,"id":"b","function":{"name":"Glob","arguments":""}`),
			call(`"index":0,"function":{"arguments":"1"}`), call(`"index":1,"function":{"arguments":"2"}`), call(`"index":0,"function":{"arguments":"1"}`)),
			blocks(called("Read", "11"), called("Glob", "2"))},
		{"no index", chunks(stop,
			call(`"id":"a","function":{"name":"Read","arguments":"1"}`), call(`"id":"a","function":{"arguments":"1"}`),
			call(`"id":"b","function":{"name":"Read","arguments":"2"}`), call(`"function":{"arguments":"2"}`)),
			blocks(called("Read", "11"), called("Read", "22"))},
		{"no id", chunks(stop,
			call(`"index":0,"function":{"name":"Read","arguments":"1"}`), call(`"index":1,"function":{"name":"Read","arguments":"2"}`)),
			blocks(called("Read", "1"), called("Read", "2"))},
		{"neither", chunks(stop,
			call(`"function":{"name":"Read","arguments":"1"}`), call(`"function":{"arguments":"1"}`), call(`"function":{"name":"Read","arguments":"2"}`)),
			blocks(called("Read", "11"), called("Read", "2"))},
		{"every call has index 0", chunks(stop,
			call(`"index":0,"id":"a","function":{"name":"Read","arguments":"1"}`), call(`"index":0,"id":"b","function":{"name":"Read","arguments":"2"}`)),
			blocks(called("Read", "1"), called("Read", "2"))},
		{"name in every piece", chunks(stop,
			call(`"index":0,"id":"a","function":{"name":"Read","arguments":"1"}`), call(`"index":0,"id":"a","function":{"name":"Read","arguments":"2"}`)),
			blocks(called("Read", "12"))},
		{"new id in every piece", chunks(stop,
			call(`"index":0,"id":"a","function":{"name":"Read","arguments":"1"}`), call(`"index":0,"id":"b","function":{"arguments":"2"}`)),
			blocks(called("Read", "12"))},
		{"name after arguments", chunks(stop,
			call(`"index":0,"id":"a","function":{"arguments":"1"}`), call(`"index":0,"function":{"name":"Read","arguments":"2"}`)),
			blocks(called("Read", "12"))},
		{"no name", chunks(stop, call(`"index":0,"id":"a","function":{"arguments":"1"}`)), blocks(called("", "1"))},
		{"arguments as an object", chunks(stop, call(`"index":0,"id":"a","function":{"name":"Read","arguments":{"p": 1}}`)),
			blocks(called("Read", `{"p": 1}`))},
		{"null arguments", chunks(stop, call(`"index":0,"id":"a","function":{"name":"Read","arguments":null}`)), blocks(called("Read", ""))},
		{"refusal", chunks(stop, `{"refusal":"I "}`, `{"refusal":"cannot"}`), llm.Answer{Blocks: []llm.Block{said("I cannot")}, Stop: llm.StopRefusal}},
		{"another choice", "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"no\"},\"finish_reason\":\"stop\"}]}\n\n" + chunks(stop, `{"content":"yes"}`),
			blocks(said("yes"))},
		{"unknown fields and reasons", chunks("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"eos_token\",\"x\":[[{}]]}],\"y\":{}}\n\n", `{"content":"a","annotations":[{"a":{}}]}`),
			blocks(said("a"))},
		{"finish with the last text", "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n", blocks(said("a"))},
		{"finish before the delta", "data: {\"choices\":[{\"finish_reason\":\"stop\",\"delta\":{\"content\":\"a\"}}]}\n\n", blocks(said("a"))},
		{"text after the finish", chunks(stop+chunks("", `{"content":"b"}`), `{"content":"a"}`), blocks(said("a"))},
		{"usage in its own chunk", chunks("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],"+counts+"}\n\ndata: [DONE]\n\n", `{"content":"a"}`),
			llm.Answer{Blocks: []llm.Block{said("a")}, Stop: llm.StopEnd, Usage: counted}},
		{"usage with the finish", chunks("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}],"+counts+"}\n\n", `{"content":"a"}`),
			llm.Answer{Blocks: []llm.Block{said("a")}, Stop: llm.StopLength, Usage: counted}},
		{"usage of old Groq", chunks("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"x_groq\":{\"usage\":"+usage+"}}\n\n", `{"content":"a"}`),
			llm.Answer{Blocks: []llm.Block{said("a")}, Stop: llm.StopEnd, Usage: counted}},
		{"usage of DeepSeek", chunks("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":5,\"prompt_cache_hit_tokens\":16}}\n\n", `{"content":"a"}`),
			llm.Answer{Blocks: []llm.Block{said("a")}, Stop: llm.StopEnd, Usage: counted}},
		{"nonsense usage", chunks("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":-20,\"completion_tokens\":\"x\"}}\n\n", `{"content":"a"}`),
			blocks(said("a"))},
		{"keep-alive lines", strings.Repeat(": OPENROUTER PROCESSING\n\n", 1000) + chunks(stop, `{"content":"a"}`), blocks(said("a"))},
		{"NUL and lone surrogates", chunks(stop, `{"content":"a\u0000b\ud83dc"}`), blocks(said("a\uFFFDb\uFFFDc"))},
		{"broken after the finish", chunks("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"cho", `{"content":"a"}`), blocks(said("a"))},
	}
}

func TestAskUnderstandsManyServers(t *testing.T) {
	for _, test := range shapes() {
		t.Run(test.name, func(t *testing.T) {
			answer, err := ask(t, llmtest.New(llmtest.Step{Raw: test.stream}), question())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, answer); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAskUnderstandsErrorsInTheStream(t *testing.T) {
	tests := []struct {
		name, stream string
		want         llm.Class
		says         string
	}{
		{"OpenRouter", chunks("data: {\"error\":{\"code\":502,\"message\":\"Provider disconnected\"},\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n", `{"content":"a"}`), llm.ClassRetry, "Provider disconnected"},
		{"OpenRouter, wrong key", "data: {\"error\":{\"code\":401,\"message\":\"No\"}}\n\n", llm.ClassFail, "No"},
		{"llama.cpp, too long", "data: {\"error\":{\"code\":400,\"message\":\"the request exceeds the available context size\",\"type\":\"exceed_context_size_error\"}}\n\n", llm.ClassShrink, "available context size"},
		{"plain text", "data: {\"error\":\"something broke\"}\n\n", llm.ClassRetry, "something broke"},
		{"in place of a stream", "{\"error\":{\"message\":\"overloaded\"}}", llm.ClassRetry, "overloaded"},
		{"given up", chunks("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"abort\"}]}\n\n", `{"content":"a"}`), llm.ClassRetry, "abort"},
		{"done without finish", chunks("data: [DONE]\n\n", `{"content":"a"}`), llm.ClassRetry, "finish_reason"},
		{"deep nonsense", "data: " + strings.Repeat("[", llm.MaxLineBytes-100) + "\n\n", llm.ClassRetry, "no JSON"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			answer, err := ask(t, llmtest.New(llmtest.Step{Raw: test.stream}), question())
			if got, ok := err.(*llm.Error); !ok || got.Class != test.want { //nolint:errorlint // the contract is an *llm.Error itself
				t.Errorf("answer = %+v, error = %v, want one of class %s", answer, err, test.want)
			} else if !strings.Contains(err.Error(), test.says) {
				t.Errorf("error = %q, want it to say %q", err, test.says)
			}
		})
	}
}

func question() llm.Request {
	return llm.Request{Items: []session.Item{{N: 1, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: "hi"}}}}
}

func start(t *testing.T, server *llmtest.Server) *openai.Provider {
	t.Helper()
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	p := openai.New(openai.Config{BaseURL: server.URL() + "/v1/", Name: "some-model", IdleTimeout: 10 * time.Second})
	t.Cleanup(p.Close)
	return p
}

func ask(t *testing.T, server *llmtest.Server, r llm.Request) (llm.Answer, error) {
	t.Helper()
	return start(t, server).Ask(t.Context(), r, func(llm.Delta) {})
}

func TestAskDoesNotWaitForTheEndOfTheConnection(t *testing.T) {
	tests := []struct {
		name, stream string
		atMost       time.Duration
	}{
		{"after [DONE]", chunks(stop, `{"content":"a"}`), 900 * time.Millisecond},
		{"after the usage", chunks("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}],"+counts+"}\n\n", `{"content":"a"}`), 900 * time.Millisecond},
		{"after the finish", chunks("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", `{"content":"a"}`), 5 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			begun := time.Now()
			if _, err := ask(t, llmtest.New(llmtest.Step{Raw: test.stream, Hang: true}), question()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took > test.atMost {
				t.Errorf("it took %v, want at most %v", took, test.atMost)
			}
		})
	}
}

func TestAskWaitsForTheUsage(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(chunks("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", `{"content":"a"}`)))
		_ = http.NewResponseController(w).Flush()
		<-time.After(200 * time.Millisecond)
		_, _ = w.Write([]byte("data: {\"choices\":[]," + counts + "}\n\n"))
	}))
	defer web.Close()
	p := openai.New(openai.Config{BaseURL: web.URL, Name: "m"})
	defer p.Close()
	answer, err := p.Ask(t.Context(), question(), func(llm.Delta) {})
	if err != nil || answer.Usage.InputTokens != 20 {
		t.Errorf("usage = %+v, error = %v", answer.Usage, err)
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	var remotes []string
	server := llmtest.New()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		remotes = append(remotes, r.RemoteAddr) // one request at a time
		server.ServeHTTP(w, r)
	}))
	defer web.Close()
	p := openai.New(openai.Config{BaseURL: web.URL, Name: "m"})
	defer p.Close()
	for range 20 {
		if _, err := p.Ask(t.Context(), question(), func(llm.Delta) {}); err != nil {
			t.Fatal(err)
		}
	}
	for _, remote := range remotes {
		if remote != remotes[0] {
			t.Fatalf("20 requests came from %q", remotes)
		}
	}
}

func TestWrongBaseURLsSaySo(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<html>hello"))
	}))
	defer page.Close()
	for _, base := range []string{page.URL, "127.0.0.1:11434/v1", "ftp://127.0.0.1/", "http://", "http://%zz", "://"} {
		p := openai.New(openai.Config{BaseURL: base, Name: "m"})
		_, err := p.Ask(t.Context(), question(), func(llm.Delta) {})
		p.Close()
		if got, ok := err.(*llm.Error); !ok || got.Class != llm.ClassFail || !strings.Contains(err.Error(), "base_url") { //nolint:errorlint // see above
			t.Errorf("base %q: error = %v, want one that names base_url", base, err)
		}
	}
}
