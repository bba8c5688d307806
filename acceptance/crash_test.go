package acceptance

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
)

// holds runs a command that notes that it ran, and then holds.
const holds = "echo ran >>ran; exec cat hold"

const interrupt = "[worker]\non_restart = \"interrupt\"\n"

// A command that ran when the server was killed is not run again: its result says
// that nobody knows what became of it, and the turn goes on, or ends, as the manifest
// says. Whoever read the stream misses nothing.
func TestA18KilledWhileToolsRun(t *testing.T) {
	for _, c := range []struct {
		name     string
		manifest string
		commands []string
		unknown  int // results
		state    session.TurnState
		code     session.ErrorCode
		asked    int
	}{
		{"one tool", "", []string{holds}, 1, session.TurnCompleted, "", 2},
		{"one tool, to be interrupted", interrupt, []string{holds}, 1, session.TurnInterrupted, session.CodeServerKilled, 1},
		{"the last of several", "", []string{"echo first", "echo second", holds}, 1, session.TurnCompleted, "", 2},
		{"the first of several", "", []string{holds, "echo second", "exit 3"}, 1, session.TurnCompleted, "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, c.manifest, bashed(c.commands...), says("I go on"))
			hold := p.fifo("hold")
			id := p.newSession()
			s := p.stream(id, "")
			r := newReader(t)
			turn := p.post(id, "go")
			for finished := 1; finished < len(c.commands); {
				ev := s.next()
				if r.take(s, ev); ev.Item != nil && ev.Item.ToolResult != nil {
					finished++
				}
			}
			defer p.running(hold).Close()
			p.crash()
			r.follow(p.client, id, turn.ID)
			if r.last.Turn.State != c.state || errorCode(*r.last.Turn) != c.code {
				t.Errorf("the turn: %s %+v", r.last.Turn.State, r.last.Turn.Error)
			}
			unknown := 0
			for _, result := range results(p.items(id)) {
				if result.Failed && strings.Contains(contentOf(result), "outcome is unknown") {
					unknown++
				}
			}
			if unknown != c.unknown || p.ran() != 1 || len(p.model.Requests()) != c.asked {
				t.Errorf("%d results are unknown, the command ran %d times, the model was asked %d times", unknown, p.ran(), len(p.model.Requests()))
			}
			p.crash() // once more, in idleness
			replayed := newReader(t)
			replayed.follow(p.client, id, turn.ID)
			p.stillFine(id)
		})
	}
}

// follow reads on, from where the reader is, until the turn has ended.
func (r *reader) follow(c *client, id session.ID, turn session.TurnID) {
	r.t.Helper()
	s := c.stream(id, r.id)
	defer s.close()
	for !r.last.Type.Terminal() || r.last.TurnID != turn {
		r.take(s, s.next())
	}
}

// A turn that was killed while the model spoke, or was waited for, is asked for
// again: what had been streamed is void, and the reader is told so.
func TestA18KilledWhileTheModelAnswers(t *testing.T) {
	shut := make(chan struct{})
	waits := llmtest.Step{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"20"}}}
	for _, c := range []struct {
		name string
		step llmtest.Step
		seen func(*sse, *reader) // what the reader sees before
	}{
		{"before its first word", llmtest.Step{Gate: shut}, nil},
		{"in mid-text", llmtest.Step{Text: []string{"Half of ", "it"}, Gate: shut, GateAfter: 1}, func(s *sse, r *reader) { r.until(s, "Half of ") }},
		{"in its reasoning", llmtest.Step{Reasoning: []string{"Let me ", "see"}, Gate: shut, GateAfter: 1}, func(s *sse, r *reader) { r.until(s, "Let me ") }},
		{"in a call", llmtest.Step{Calls: []llmtest.Call{{Tool: "Bash", Arguments: `{"command":"echo ran >>ran"}`, Pieces: 4}}, Gate: shut, GateAfter: 2}, nil},
		{"while it has to be waited for", waits, func(s *sse, r *reader) {
			for r.last.Type != session.EventStepRetrying {
				r.take(s, s.next())
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 1)
			p := launch(t, "", announces(asked, c.step), bashed("echo ran >>ran"), says("All of it, now"))
			id := p.newSession()
			turn := p.post(id, "go")
			queued := []session.Turn{p.post(id, "second"), p.post(id, "third")}
			p.model.Add(says("two"), says("three"))
			r, s := newReader(t), p.stream(id, "")
			<-asked
			if c.seen != nil {
				c.seen(s, r)
			}
			p.crash()
			r.follow(p.client, id, turn.ID)
			if r.last.Turn.State != session.TurnCompleted || p.ran() != 1 {
				t.Errorf("the turn: %s %+v; commands ran %d times", r.last.Turn.State, r.last.Turn.Error, p.ran())
			}
			for _, turn := range queued { // each after the one before
				r.follow(p.client, id, turn.ID)
			}
			const first = "user_message tool_call tool_result assistant_message"
			if got := kinds(p.items(id)); got != first+strings.Repeat(" user_message assistant_message", 2) {
				t.Errorf("items %q", got)
			}
			p.stillFine(id)
		})
	}
}

// until reads deltas until an item's text ends so.
func (r *reader) until(s *sse, text string) {
	r.t.Helper()
	for {
		ev := s.next()
		if r.take(s, ev); ev.Delta != nil && strings.HasSuffix(r.text[ev.Delta.ItemN], text) {
			return
		}
	}
}

// rest reads to the end of a stream, which the server closes in order.
func (r *reader) rest(s *sse) {
	r.t.Helper()
	for {
		ev, err := s.read()
		if errors.Is(err, errEnd) {
			return
		}
		if err != nil {
			r.t.Fatalf("the stream broke: %v", err)
		}
		r.take(s, ev)
	}
}

// A server that is killed whenever it has come up still gets there.
func TestA18KilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	shut, asked := make(chan struct{}), make(chan struct{}, 1)
	held := announces(asked, llmtest.Step{Text: []string{"Half ", "of it"}, Gate: shut, GateAfter: 1})
	p := launch(t, "", held, held, held, held, says("All of it"))
	id := p.newSession()
	turn := p.post(id, "go")
	r := newReader(t)
	for range 4 {
		<-asked
		s := p.stream(id, r.id)
		r.until(s, "Half ")
		p.crash()
	}
	r.follow(p.client, id, turn.ID)
	if got := kinds(p.items(id)); got != "user_message assistant_message" || r.last.Turn.State != session.TurnCompleted {
		t.Errorf("the turn: %s, items %q", r.last.Turn.State, got)
	}
	p.stillFine(id)
}

// A turn that dies with the server each time it is taken up again is given up, and
// the session takes the next one.
func TestA18KilledTooOften(t *testing.T) {
	t.Parallel()
	shut, asked := make(chan struct{}), make(chan struct{}, 1)
	p := launch(t, "")
	p.model.Otherwise = announces(asked, llmtest.Step{Gate: shut})
	id := p.newSession()
	turn := p.post(id, "go")
	for range 6 {
		<-asked
		p.crash()
	}
	r := newReader(t)
	r.follow(p.client, id, turn.ID)
	if ended := r.last.Turn; ended.State != session.TurnInterrupted || errorCode(*ended) != session.CodeServerKilled || ended.Restarts != 6 {
		t.Errorf("the turn: %s %+v after %d restarts", ended.State, ended.Error, ended.Restarts)
	}
	if asked := len(p.model.Requests()); asked != 6 {
		t.Errorf("the model was asked %d times", asked)
	}
	p.model.Otherwise = says("hello")
	p.stillFine(id)
}

// At SIGTERM turns end as they can within the drain, streams are closed in order, and
// what waited runs after the next start.
func TestA18SIGTERM(t *testing.T) {
	for _, c := range []struct {
		name  string
		drain string
		done  bool // the tool ends within the drain
		state session.TurnState
		code  session.ErrorCode
	}{
		{"turn that outlives the drain", "200ms", false, session.TurnInterrupted, session.CodeServerStopping},
		{"no drain", "0s", false, session.TurnInterrupted, session.CodeServerStopping},
		{"turn that ends in time", "20s", true, session.TurnCompleted, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := launch(t, "drain_timeout = \""+c.drain+"\"\n", bashed("echo ran >>ran; cat hold"), says("done"))
			hold := p.fifo("hold")
			id, idle := p.newSession(), p.newSession()
			s, silent := p.stream(id, ""), p.stream(idle, "")
			turn, queued := p.post(id, "go"), p.post(id, "and then")
			command := p.running(hold)
			defer command.Close()
			r := newReader(t)
			for r.last.Type != session.EventToolStarted {
				r.take(s, s.next())
			}
			started := time.Now()
			p.signal()
			if c.done {
				p.refusesTurns(idle)
				command.Close()
			}
			r.rest(s)
			silent.rest()
			if code := p.exits(20 * time.Second); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if took := time.Since(started); took > 10*time.Second {
				t.Errorf("the stop took %s", took)
			}
			if last := r.last.Turn; last == nil || last.ID != turn.ID || last.State != c.state || errorCode(*last) != c.code {
				t.Errorf("the stream ends with %s %+v", r.last.Type, last)
			}
			p.boot()
			r.follow(p.client, id, queued.ID)
			if r.last.Turn.State != session.TurnCompleted || p.ran() != 1 {
				t.Errorf("the queued turn: %s; the command ran %d times", r.last.Turn.State, p.ran())
			}
			p.stillFine(id)
		})
	}
}

// refusesTurns waits until a stopping server takes no turns any more. Those that it
// took before that are as good as any.
func (p *process) refusesTurns(id session.ID) {
	p.t.Helper()
	for range 1000 {
		answer, text := p.send("POST", turnsOf(id), map[string]any{"input": "go"})
		switch answer.StatusCode {
		case http.StatusAccepted, http.StatusTooManyRequests:
			continue
		case http.StatusServiceUnavailable:
			if !strings.Contains(string(text), `"code":"stopping"`) {
				p.t.Errorf("refused with %s", text)
			}
			return
		}
		p.t.Fatalf("a turn while the server stops: %s %s", answer.Status, text)
	}
	p.t.Error("the stopping server takes turns")
}
