package acceptance

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
	"loadline/internal/tool"
)

// reader puts together what a client sees of a session, over as many connections as
// it likes, and fails at a gap, a double or a step back.
type reader struct {
	t    *testing.T
	id   string // to resume from
	seq  int64
	text map[int64]string // live, by item; replaced by the item itself
	live int64            // bytes of the live text of the step
	last session.Event
}

func newReader(t *testing.T) *reader { return &reader{t: t, text: map[int64]string{}} }

func (r *reader) take(s *sse, ev session.Event) {
	r.t.Helper()
	before, now := position(r.t, r.id), position(r.t, s.id)
	switch {
	case ev.Delta != nil:
		if r.live += int64(len(ev.Delta.Text)); len(now) != 2 || now[1] != r.live {
			r.t.Errorf("id %q of a delta, up to which the step has %d bytes", s.id, r.live)
		}
		if at := int64(len(r.text[ev.Delta.ItemN])); ev.Delta.AtByte != at {
			r.t.Errorf("a delta at byte %d of item %d, of which %d bytes are known", ev.Delta.AtByte, ev.Delta.ItemN, at)
		}
		r.text[ev.Delta.ItemN] += ev.Delta.Text
	case ev.Type.Durable() && ev.Seq != r.seq+1:
		r.t.Errorf("event %d after event %d", ev.Seq, r.seq)
	case ev.Type == session.EventStepRestarted:
		clear(r.text)
	case ev.Item != nil && ev.Item.AssistantMessage != nil:
		if whole := ev.Item.AssistantMessage.Text; !strings.HasPrefix(whole, r.text[ev.Item.N]) {
			r.t.Errorf("the live text %q is no beginning of %q", r.text[ev.Item.N], whole)
		}
	}
	if ev.Type.Durable() {
		r.seq = ev.Seq
	}
	if ev.Type == session.EventStepCompleted || ev.Type == session.EventStepRestarted {
		r.live = 0
	}
	if (ev.Type.Durable() || ev.Delta != nil) && slices.Compare(now, before) <= 0 {
		r.t.Errorf("id %q after id %q", s.id, r.id)
	}
	r.id, r.last = s.id, ev
}

// position makes ids comparable.
func position(t *testing.T, id string) []int64 {
	t.Helper()
	var all []int64
	for part := range strings.SplitSeq(id, ".") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil && id != "" {
			t.Errorf("id %q: %v", id, err)
		}
		all = append(all, n)
	}
	return all
}

// Readers that drop their connection after any event and come back with its id see
// each byte and each event once, while the turn goes on and after it.
func TestA12ReadersThatComeBackMissNothing(t *testing.T) {
	pieces := strings.SplitAfter(strings.Repeat("größer 😀 ", 100), " ")
	slow := llmtest.Step{Text: pieces, Reasoning: pieces[:20], Delay: time.Millisecond}
	slowCalls := calls("Echo", "Echo")
	slowCalls.Text, slowCalls.Delay = pieces[:50], time.Millisecond
	broken := llmtest.Step{Text: pieces[:30], Delay: time.Millisecond, CutAfterBytes: 3000}
	w := start(t, setup{
		manifest: "[model]\nretry_max_wait = \"5ms\"\n",
		tools:    []tool.Tool{prints("Echo", "x")}, script: []llmtest.Step{slowCalls, broken, slow},
	})
	id := w.newSession()
	turn := w.post(id, "go")
	var readers sync.WaitGroup
	transcripts := make([]map[int64]string, 4)
	for i := range transcripts {
		readers.Go(func() {
			r := newReader(t)
			for !r.last.Type.Terminal() {
				s := w.stream(id, r.id)
				for n := rand.N(60); n >= 0 && !r.last.Type.Terminal(); n-- {
					ev, err := s.read()
					if err != nil {
						t.Errorf("reader %d: %v", i, err)
						return
					}
					r.take(s, ev)
				}
				s.close()
			}
			transcripts[i] = r.text
		})
	}
	readers.Wait()
	if ended := w.await(id, turn.ID); ended.State != session.TurnCompleted || ended.Steps != 2 {
		t.Errorf("the turn: %s after %d steps", ended.State, ended.Steps)
	}
	events := w.events(id)
	for _, ev := range events {
		s := w.stream(id, fmt.Sprint(ev.Seq))
		for _, want := range events[ev.Seq:] {
			if diff := cmp.Diff(want, s.next()); diff != "" {
				t.Errorf("after %d: %s", ev.Seq, diff)
			}
		}
		s.close()
	}
	w.stillFine(id)
}

// Every place within a running answer can be resumed from, to the byte; a place that
// no stream has given is answered with stream.reset.
func TestA12EveryPlaceOfARunningAnswer(t *testing.T) {
	const text = "größer 😀 als "
	gate := make(chan struct{})
	w := start(t, setup{script: []llmtest.Step{{Text: append(strings.SplitAfter(text, " "), "nichts"), GateAfter: 4, Gate: gate}}})
	id := w.newSession()
	turn := w.post(id, "go")
	live := w.stream(id, "")
	defer live.close()
	if got := live.text(len(text)); got != text {
		t.Fatalf("the stream says %q", got)
	}
	w.post(id, "and then") // event 4, among the text
	for offset := range len(text) + 3 {
		s := w.stream(id, fmt.Sprintf("3.%d", offset))
		known := offset <= len(text) && (offset == len(text) || utf8.RuneStart(text[offset]))
		want := text
		if known {
			want = text[offset:]
		} else if ev := s.next(); ev.Reset == nil || ev.Reset.From != 3 {
			t.Errorf("3.%d is answered with %s %+v", offset, ev.Type, ev.Reset)
		}
		if got := s.text(len(want)); got != want {
			t.Errorf("after 3.%d comes %q, want %q", offset, got, want)
		}
		if ev := s.next(); ev.Type != session.EventTurnQueued || ev.Seq != 4 {
			t.Errorf("after the text from 3.%d comes %s %d", offset, ev.Type, ev.Seq)
		}
		s.close()
	}
	gate <- struct{}{}
	if got := live.text(len("nichts")); got != "nichts" {
		t.Errorf("the connected reader goes on with %q", got)
	}
	w.await(id, turn.ID)
	for _, last := range []string{"3", "3.0", "3.5", "3.6", "3.999"} {
		s := w.stream(id, last)
		if ev := s.next(); ev.Seq != 4 {
			t.Errorf("%s of the finished answer is followed by %s %d", last, ev.Type, ev.Seq)
		}
		s.close()
	}
}

func TestA12WhereAStreamBegins(t *testing.T) {
	w := start(t, setup{script: []llmtest.Step{says("one")}})
	id := w.newSession()
	w.say(id, "go")
	for _, c := range []struct {
		name, header, after string
		first               int64 // seq; 0: refused; -1: nothing old comes
		reset               bool
	}{
		{"no header", "", "", 1, false},
		{"zero", "0", "", 1, false},
		{"one in the middle", "2", "", 3, false},
		{"the same in the address", "", "2", 3, false},
		{"the header wins", "2", "4", 3, false},
		{"the last", "LAST", "", -1, false},
		{"now", "", "now", -1, false},
		{"beyond the last", "99", "", 1, true},
		{"text beyond the last", "LAST.7", "", -1, true},
		{"a word", "abc", "", 0, false},
		{"now as a header", "now", "", 0, false},
		{"negative", "-1", "", 0, false},
		{"half", "1.", "", 0, false},
		{"other half", ".1", "", 0, false},
		{"three parts", "1.2.3", "", 0, false},
		{"exponent", "1e3", "", 0, false},
		{"beyond all numbers", "99999999999999999999", "", 0, false},
		{"a word in the address", "", "abc", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &client{t: t, url: w.url, http: w.http, model: w.model, patience: w.patience}
			request := w.request("GET", "/v1/sessions/"+string(id)+"/events?after="+c.after, nil)
			lastSeq := fmt.Sprint(w.session(id).LastSeq)
			if c.header != "" {
				request.Header.Set("Last-Event-ID", strings.ReplaceAll(c.header, "LAST", lastSeq))
			}
			if c.first == 0 {
				answer, err := w.http.Do(request)
				if err != nil || answer.StatusCode != http.StatusBadRequest || answer.Header.Get("Content-Type") != "application/problem+json" {
					t.Fatalf("answer %v %v", answer, err)
				}
				answer.Body.Close()
				return
			}
			s := w.open(request)
			defer s.close()
			if c.reset && s.next().Reset == nil {
				t.Error("no stream.reset")
			}
			if c.first < 0 {
				c.first = w.session(id).LastSeq + 1
				w.say(id, "more")
			}
			if ev := s.next(); ev.Seq != c.first || ev.Delta != nil {
				t.Errorf("the stream begins with %s %d, want %d", ev.Type, ev.Seq, c.first)
			}
		})
	}
	w.stillFine(id)
}
