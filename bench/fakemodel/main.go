// Command fakemodel is a model that costs nothing: it answers OpenAI chat
// completions as a stream whose bytes were made when it started. The name of the
// model asked for says how many tokens come: fake-20 answers 20.
//
// It prints its address, http://127.0.0.1:PORT, and serves until it is killed.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// token is the text of each token: five bytes that no JSON escapes.
const token = "word "

// headBytes is how far into a request the name of the model is looked for.
const headBytes = 512

func main() {
	lengths := flag.String("tokens", "20", "lengths of the answers, comma-separated")
	flag.Parse()
	model, err := newModel(strings.Split(*lengths, ","))
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	mux := http.NewServeMux()
	mux.Handle("POST /v1/chat/completions", model)
	log.Fatal(http.Serve(listener, mux))
}

// model holds the body of the answer for each name. It never changes.
type model map[string][]byte

func newModel(lengths []string) (model, error) {
	m := model{}
	for _, length := range lengths {
		n, err := strconv.Atoi(length)
		if err != nil || n < 1 || n > 1e6 {
			return nil, fmt.Errorf("-tokens: %q is not a number from 1 to 1000000", length)
		}
		name := "fake-" + length
		m[name] = stream(name, n)
	}
	return m, nil
}

// stream makes what a provider of OpenAI's protocol sends for n tokens of text.
func stream(name string, n int) []byte {
	var b bytes.Buffer
	chunk := func(choices, usage string) {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":%q,"choices":%s%s}`+"\n\n",
			name, choices, usage)
	}
	chunk(`[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]`, "")
	for range n {
		chunk(`[{"index":0,"delta":{"content":"`+token+`"},"finish_reason":null}]`, "")
	}
	chunk(`[{"index":0,"delta":{},"finish_reason":"stop"}]`, "")
	chunk(`[]`, fmt.Sprintf(`,"usage":{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}`, n, n+10))
	b.WriteString("data: [DONE]\n\n")
	return b.Bytes()
}

// ServeHTTP reads no more of a request than it must: the model's name from its
// first bytes; the rest is drained so that the connection can be used again.
func (m model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := make([]byte, headBytes)
	n, err := io.ReadFull(r.Body, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		http.Error(w, "no body", http.StatusBadRequest)
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return // the client is gone
	}
	answer, known := m[modelName(head[:n])]
	if !known {
		http.Error(w, fmt.Sprintf(`the first %d bytes ask for no model of -tokens`, headBytes), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write(answer) // fails when the client is gone
}

func modelName(head []byte) string {
	_, rest, _ := bytes.Cut(head, []byte(`"model":"`))
	name, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(name)
}
