package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
)

// patience bounds each wait of a test for something that will happen.
const patience = 30 * time.Second

// client talks to a server, and knows the model behind it.
type client struct {
	t     *testing.T
	url   string
	http  *http.Client
	model *llmtest.Server

	patience time.Duration
}

// newClient is one without a model and without a server yet.
func newClient(t *testing.T) *client {
	return &client{t: t, http: http.DefaultClient, patience: patience}
}

func (c *client) startModel(script []llmtest.Step) {
	c.t.Helper()
	c.model = llmtest.New(script...)
	if err := c.model.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(c.model.Close)
}

// do sends a request with a JSON body, when there is one, and decodes the answer.
func (c *client) do(method, path string, body, into any, headers ...string) *http.Response {
	c.t.Helper()
	answer, text := c.send(method, path, body, headers...)
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			c.t.Fatalf("%s %s: %d %s: %v", method, path, answer.StatusCode, text, err)
		}
	}
	return answer
}

func (c *client) send(method, path string, body any, headers ...string) (*http.Response, []byte) {
	c.t.Helper()
	answer, err := c.http.Do(c.request(method, path, body, headers...))
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer, text
}

func (c *client) request(method, path string, body any, headers ...string) *http.Request {
	c.t.Helper()
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			c.t.Fatal(err)
		}
		reader = bytes.NewReader(encoded)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), c.patience)
	c.t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, reader)
	if err != nil {
		c.t.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return request
}

func (c *client) newSession() session.ID {
	c.t.Helper()
	var s session.Session
	if answer := c.do("POST", "/v1/sessions", map[string]any{}, &s); answer.StatusCode != http.StatusCreated {
		c.t.Fatalf("create a session: %s", answer.Status)
	}
	return s.ID
}

func (c *client) session(id session.ID) (s session.Session) {
	c.t.Helper()
	c.do("GET", "/v1/sessions/"+string(id), nil, &s)
	return s
}

func turnsOf(id session.ID) string { return fmt.Sprintf("/v1/sessions/%s/turns", id) }

// post submits a turn.
func (c *client) post(id session.ID, input string, headers ...string) (t session.Turn) {
	c.t.Helper()
	if answer := c.do("POST", turnsOf(id), map[string]any{"input": input}, &t, headers...); answer.StatusCode != http.StatusAccepted {
		c.t.Fatalf("post a turn: %s", answer.Status)
	}
	return t
}

// say submits a turn and waits for its end.
func (c *client) say(id session.ID, input string) session.Turn {
	c.t.Helper()
	return c.await(id, c.post(id, input).ID)
}

// await reads the stream until the turn has ended, and returns it in its final form.
func (c *client) await(id session.ID, turn session.TurnID) session.Turn {
	c.t.Helper()
	s := c.stream(id, "")
	defer s.close()
	ended := s.until(func(ev session.Event) bool { return ev.Type.Terminal() && ev.TurnID == turn })
	return *ended.Turn
}

func (c *client) cancel(id session.ID, turn session.TurnID) (t session.Turn) {
	c.t.Helper()
	if answer := c.do("POST", turnsOf(id)+"/"+string(turn)+"/cancel", nil, &t); answer.StatusCode != http.StatusOK {
		c.t.Fatalf("cancel: %s", answer.Status)
	}
	return t
}

// pages reads all pages of a list.
func pages[T any](c *client, path string, headers ...string) []T {
	c.t.Helper()
	var all []T
	for cursor := ""; ; {
		var page struct {
			Data       []T    `json:"data"`
			NextCursor string `json:"next_cursor"`
		}
		c.do("GET", path+"?limit=200&cursor="+cursor, nil, &page, headers...)
		all = append(all, page.Data...)
		if cursor = page.NextCursor; cursor == "" {
			return all
		}
	}
}

func (c *client) items(id session.ID) []session.Item {
	c.t.Helper()
	return pages[session.Item](c, fmt.Sprintf("/v1/sessions/%s/items", id))
}

// events are the durable events of a session.
func (c *client) events(id session.ID) []session.Event {
	c.t.Helper()
	return pages[session.Event](c, fmt.Sprintf("/v1/sessions/%s/events", id), "Accept", "application/json")
}

// results are the tool results of a history.
func results(items []session.Item) []session.ToolResult {
	var all []session.ToolResult
	for _, item := range items {
		if item.ToolResult != nil {
			all = append(all, *item.ToolResult)
		}
	}
	return all
}

// kinds are those of items, for comparison with a list of words.
func kinds(items []session.Item) string {
	var all []string
	for _, item := range items {
		all = append(all, string(item.Kind))
	}
	return strings.Join(all, " ")
}

// metric is the value of one series, as /metrics shows it.
func (c *client) metric(series string) string {
	c.t.Helper()
	_, text := c.send("GET", "/metrics", nil)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "loadline_"+series+" "); ok {
			return value
		}
	}
	c.t.Fatalf("there is no series %s", series)
	return ""
}

// stillFine fails when the model refused a request for its form, when the session is
// not idle or does not take another turn, or when its log is not in order.
func (c *client) stillFine(id session.ID) {
	c.t.Helper()
	if s := c.session(id); s.State != session.StateIdle || s.Queued != 0 {
		c.t.Errorf("the session is %s with %d queued turns after all turns have ended", s.State, s.Queued)
	}
	c.model.Add(llmtest.Step{Text: []string{"fine"}})
	if turn := c.say(id, "and now?"); turn.State != session.TurnCompleted {
		c.t.Errorf("the next turn: %s %v", turn.State, turn.Error)
	}
	if problems := c.model.Problems(); len(problems) > 0 {
		c.t.Errorf("the model refused: %s", strings.Join(problems, "; "))
	}
	c.inOrder(id)
}

// inOrder checks what is stored: numbers are dense, each call has one result, in call
// order, and each turn has one terminal event and nothing after it.
func (c *client) inOrder(id session.ID) {
	c.t.Helper()
	ended := map[session.TurnID]bool{}
	for i, ev := range c.events(id) {
		if ev.Seq != int64(i+1) {
			c.t.Errorf("event %d has seq %d", i+1, ev.Seq)
		}
		if ended[ev.TurnID] {
			c.t.Errorf("%s of turn %s after its end", ev.Type, ev.TurnID)
		}
		ended[ev.TurnID] = ev.Type.Terminal()
	}
	if slices.Contains(slices.Collect(maps.Values(ended)), false) {
		c.t.Error("a turn has no terminal event")
	}
	var open []int64
	for i, item := range c.items(id) {
		if item.N != int64(i+1) {
			c.t.Errorf("item %d stands at place %d", item.N, i+1)
		}
		switch {
		case item.ToolCall != nil:
			open = append(open, item.N)
		case item.ToolResult != nil && len(open) > 0 && open[0] == item.ToolResult.CallN:
			open = open[1:]
		case item.ToolResult != nil || len(open) > 0:
			c.t.Errorf("item %d is a %s while the calls %v have no result", item.N, item.Kind, open)
		}
	}
}
