package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	formSessions = 4 // of each form in a round
	formTurns    = 4 // of each session
	formReaders  = 8 // of each turn
)

// form is a protocol in which a turn is streamed.
type form struct {
	name string
	path string // SESSION stands for the id of the session
	body string // RUN stands for a text that no other turn has: whoever sends it again reads the same one
	end  string // the last event of a turn that has completed
}

// forms are the native one and those that are translated from it.
func forms() []form {
	const message = `"messages":[{"id":"RUN","role":"user","content":"Say what you know of load lines."}]`
	return []form{
		{"native", "/v1/sessions/SESSION/turns", `{"input":"Say what you know of load lines."}`, "event: turn.completed\n"},
		{"the form of the AI SDK", "/v1/sessions/SESSION/ai-sdk", `{"id":"c","messages":[{"id":"RUN","role":"user","parts":[{"type":"text","text":"Say what you know of load lines."}]}]}`, `"finishReason":"stop"`},
		{"AG-UI", "/v1/sessions/SESSION/ag-ui", `{"threadId":"t","runId":"RUN",` + message + `}`, `"RUN_FINISHED"`},
		{"Chat Completions", "/v1/chat/completions", `{"model":"default","stream":true,` + message + `}`, `"finish_reason":"stop"`},
	}
}

// measureForms compares the CPU time of turns of 4000 tokens in each translation with
// that of the same turns in the native form, all of them in turn on one server.
func measureForms(ctx context.Context, l *lab) ([]row, error) {
	server, err := l.server(ctx, "", longTokens)
	if err != nil {
		return nil, err
	}
	defer end(server)
	all := forms()
	spent := make([]time.Duration, len(all))
	for round := range rounds + 1 {
		for i, f := range all {
			cpu, err := cpuOfForm(ctx, server, f)
			if err != nil {
				return nil, fmt.Errorf("a stream of %s: %w", f.name, err)
			}
			if round > 0 { // the first one warms it up
				spent[i] += cpu
			}
		}
	}
	var rows []row
	for i, f := range all[1:] {
		rows = append(rows, row{
			what: "CPU of streams in " + f.name + ", beside native ones", floor: seconds(spent[0]), server: seconds(spent[i+1]),
			got: 100 * (spent[i+1].Seconds()/spent[0].Seconds() - 1), unit: " % more", limit: 10,
		})
	}
	return rows, nil
}

// cpuOfForm is the CPU time of the server for turns in new sessions.
func cpuOfForm(ctx context.Context, server *target, f form) (time.Duration, error) {
	before, err := server.cpu()
	if err != nil {
		return 0, err
	}
	for range formSessions {
		url, err := server.turnsURL(ctx)
		if err != nil {
			return 0, err
		}
		id := strings.TrimSuffix(strings.TrimPrefix(url, server.url+"/v1/sessions/"), "/turns")
		for turn := range formTurns {
			if err := f.fanOut(ctx, server, id, turn); err != nil {
				return 0, err
			}
		}
	}
	after, err := server.cpu()
	return after - before, err
}

// fanOut runs one turn for several readers.
func (f form) fanOut(ctx context.Context, server *target, session string, turn int) error {
	var readers sync.WaitGroup
	errs := make([]error, formReaders)
	for i := range errs {
		readers.Go(func() { errs[i] = f.stream(ctx, server, session, turn) })
	}
	readers.Wait()
	return errors.Join(errs...)
}

// stream reads one turn, which must complete with all of its text.
func (f form) stream(ctx context.Context, server *target, session string, turn int) error {
	run := fmt.Sprintf("%s-%d", session, turn)
	fill := strings.NewReplacer("SESSION", session, "RUN", run)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.url+fill.Replace(f.path), strings.NewReader(fill.Replace(f.body)))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Loadline-Session", session) // where the path does not name it
	r.Header.Set("Idempotency-Key", run)      // where the body does not have one
	answer, err := server.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(f.end)) || len(text) < longTokens*tokenBytes {
		return fmt.Errorf("%s: %d bytes, without the whole turn: %.300s", answer.Status, len(text), text)
	}
	return nil
}
