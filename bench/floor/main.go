// Command floor is the least that a server of turns can do, for comparison: a
// bare net/http handler that asks a model and passes the text of its stream on.
//
// POST /turns with {"input": "…"} is answered with text/event-stream: one data
// line for each chunk of the model, flushed at once, then the event "done", or
// the event "error". With -store turn, each turn is one durable SQLite commit
// before "done". It keeps no history, has no sessions and nothing to resume.
//
// It prints its address, http://127.0.0.1:PORT, and serves until it is killed.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
)

const (
	maxInputBytes = 1 << 20
	maxLineBytes  = 1 << 20
)

func main() {
	modelURL := flag.String("model-url", "", "base URL of the model's service, ending in /v1")
	modelName := flag.String("model", "fake-20", "name of the model")
	storeKind := flag.String("store", "none", "none, or turn: one durable commit a turn")
	path := flag.String("db", "floor.db", "SQLite file of -store turn")
	flag.Parse()

	f := &floor{url: *modelURL + "/chat/completions", model: *modelName, client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true},
	}}
	switch *storeKind {
	case "none":
		f.keep = func(context.Context, string, string) error { return nil }
	case "turn":
		s, err := openStore(*path)
		if err != nil {
			log.Fatal(err)
		}
		f.keep = s.add
	default:
		log.Fatalf("-store: %q is neither none nor turn", *storeKind)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	mux := http.NewServeMux()
	mux.Handle("POST /turns", f)
	log.Fatal(http.Serve(listener, mux))
}

// floor answers turns.
type floor struct {
	client *http.Client
	url    string // of the model
	model  string
	keep   func(ctx context.Context, input, answer string) error
}

func (f *floor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var turn struct {
		Input string `json:"input"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxInputBytes)).Decode(&turn); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	var answer strings.Builder
	err := f.ask(r.Context(), turn.Input, func(text string) error {
		answer.WriteString(text)
		return writeEvent(w, out, "", map[string]string{"text": text})
	})
	if err == nil {
		err = f.keep(r.Context(), turn.Input, answer.String())
	}
	if err != nil {
		_ = writeEvent(w, out, "error", map[string]string{"detail": err.Error()}) // fails when the client is gone
		return
	}
	_ = writeEvent(w, out, "done", struct{}{})
}

func writeEvent(w http.ResponseWriter, out *http.ResponseController, name string, body any) error {
	line, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if name != "" {
		line = fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, line)
	} else {
		line = fmt.Appendf(nil, "data: %s\n\n", line)
	}
	if _, err := w.Write(line); err != nil {
		return err
	}
	return out.Flush()
}

// ask sends one question and gives the text of each chunk of the answer to emit.
// An answer without a finish reason is an error.
func (f *floor) ask(ctx context.Context, input string, emit func(text string) error) error {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	body, err := json.Marshal(struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
		Stream   bool      `json:"stream"`
	}{f.model, []message{{"user", input}}, true})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := f.client.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the model answers %s", answer.Status)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxLineBytes)
	return readChunks(lines, emit)
}

func readChunks(lines *bufio.Scanner, emit func(text string) error) error {
	finished := false
	for lines.Scan() {
		data, isData := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !isData || string(data) == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
				FinishReason string `json:"finish_reason"`
			} `json:"choices"`
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return fmt.Errorf("decode a chunk: %w", err)
		}
		for _, choice := range chunk.Choices {
			finished = finished || choice.FinishReason != ""
			if choice.Delta.Content == "" {
				continue
			}
			if err := emit(choice.Delta.Content); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !finished {
		return errors.New("the model's stream is cut off")
	}
	return nil
}
