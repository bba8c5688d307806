package acceptance

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"loadline/internal/session"
)

// sse is one connection to a stream.
type sse struct {
	t      *testing.T
	answer *http.Response
	lines  *bufio.Reader
	id     string // of the last event that had one
}

// stream opens a session's stream after an event id; empty means from the beginning.
func (c *client) stream(id session.ID, lastEventID string) *sse {
	c.t.Helper()
	headers := []string{"Accept", "text/event-stream"}
	if lastEventID != "" {
		headers = append(headers, "Last-Event-ID", lastEventID)
	}
	return c.open(c.request("GET", fmt.Sprintf("/v1/sessions/%s/events", id), nil, headers...))
}

// postStream submits a turn and follows its events in the same answer.
func (c *client) postStream(id session.ID, input string, headers ...string) *sse {
	c.t.Helper()
	headers = append(headers, "Accept", "text/event-stream")
	return c.open(c.request("POST", turnsOf(id), map[string]any{"input": input}, headers...))
}

func (c *client) open(request *http.Request) *sse {
	c.t.Helper()
	answer, err := c.http.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		c.t.Fatalf("open the stream: %s", answer.Status)
	}
	return &sse{t: c.t, answer: answer, lines: bufio.NewReader(answer.Body), id: request.Header.Get("Last-Event-ID")}
}

func (s *sse) close() { s.answer.Body.Close() }

// next is the next event; comments are passed over.
func (s *sse) next() session.Event {
	s.t.Helper()
	ev, err := s.read()
	if err != nil {
		s.t.Fatalf("the stream ended: %v", err)
	}
	return ev
}

// until reads up to an event and returns it.
func (s *sse) until(wanted func(session.Event) bool) session.Event {
	s.t.Helper()
	for {
		if ev := s.next(); wanted(ev) {
			return ev
		}
	}
}

// text reads deltas until they come to n bytes; other events are passed over.
func (s *sse) text(n int) string {
	s.t.Helper()
	var all strings.Builder
	for all.Len() < n {
		if ev := s.next(); ev.Delta != nil {
			all.WriteString(ev.Delta.Text)
		}
	}
	return all.String()
}

// rest reads to the end of the stream, which the server closes in order.
func (s *sse) rest() []session.Event {
	s.t.Helper()
	var all []session.Event
	for {
		ev, err := s.read()
		switch {
		case errors.Is(err, errEnd):
			return all
		case err != nil:
			s.t.Fatalf("the stream broke: %v", err)
		}
		all = append(all, ev)
	}
}

var errEnd = errors.New("the end of the stream")

// read parses one block of lines, strictly: an event has an id, if any, then its
// type, then one line of data; a comment stands alone.
func (s *sse) read() (ev session.Event, err error) {
	var block []string
	for {
		line, err := s.lines.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" && len(block) == 0 {
			return ev, errEnd
		}
		if err != nil {
			return ev, fmt.Errorf("after %q: %w", append(block, line), err)
		}
		if line != "\n" {
			block = append(block, line[:len(line)-1])
			continue
		}
		if len(block) == 1 && strings.HasPrefix(block[0], ":") {
			block = nil
			continue
		}
		return s.parse(block)
	}
}

func (s *sse) parse(block []string) (ev session.Event, err error) {
	fields := block
	id, hasID := strings.CutPrefix(fields[0], "id: ")
	if hasID {
		fields = fields[1:]
	}
	if len(fields) != 2 || !strings.HasPrefix(fields[0], "event: ") || !strings.HasPrefix(fields[1], "data: ") {
		return ev, fmt.Errorf("malformed event %q", block)
	}
	if err := json.Unmarshal([]byte(fields[1][len("data: "):]), &ev); err != nil {
		return ev, fmt.Errorf("data of %q: %w", block, err)
	}
	if fields[0][len("event: "):] != string(ev.Type) || hasID != (ev.Type.Durable() || ev.Delta != nil) {
		return ev, fmt.Errorf("id and type of %q do not fit its data", block)
	}
	if hasID {
		s.id = id
	}
	return ev, nil
}

func ofType(wanted session.EventType) func(session.Event) bool {
	return func(ev session.Event) bool { return ev.Type == wanted }
}
