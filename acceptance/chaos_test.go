package acceptance

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
)

var (
	chaosKills = flag.Int("kills", 20, "how often TestChaos kills the server")
	chaosSeed  = flag.Uint64("seed", 0, "of TestChaos; 0 takes a fresh one")
)

const (
	chaosClients  = 4
	turnsASession = 12
)

// storm is a server that is killed at any moment, and clients that do not give up.
type storm struct {
	*process
	seed  uint64
	url   atomic.Pointer[string]
	quick *http.Client
	over  chan struct{} // closed when the clients shall stop

	mu       sync.Mutex // guards the fields below
	sessions []session.ID
	accepted map[string]session.TurnID // by their inputs
}

// TestChaos kills the real server at random moments. No input that was accepted is
// lost, nothing is done twice, and each session goes on.
func TestChaos(t *testing.T) {
	t.Parallel()
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	defer func() {
		if t.Failed() {
			t.Logf("go test ./acceptance -run TestChaos -kills %d -seed %d", *chaosKills, seed)
		}
	}()
	s := &storm{
		process: launch(t, ""), seed: seed, quick: &http.Client{Timeout: 5 * time.Second}, over: make(chan struct{}), accepted: map[string]session.TurnID{},
	}
	s.model.Otherwise = replies(writesDown)
	s.publish()
	var clients sync.WaitGroup
	for n := range chaosClients {
		clients.Go(func() { s.postTurns(n) })
	}
	s.killing(rand.New(rand.NewPCG(seed, 0)))
	close(s.over)
	clients.Wait()
	s.check()
}

// writesDown is a model that has each input written down by a command, once, and
// then says so.
func writesDown(r llmtest.Request) llmtest.Step {
	last := r.Messages[len(r.Messages)-1]
	if _, name, found := strings.Cut(last.Text, "write "); found && last.Role == "user" {
		step := bashed("echo " + strings.Fields(name)[0] + " >>ran")
		step.Text = []string{"I ", "write ", "it ", "down"}
		return step
	}
	return says("It is written")
}

func (s *storm) publish() { url := s.process.url; s.url.Store(&url) }

// killing kills the server again and again, also while it starts.
func (s *storm) killing(random *rand.Rand) {
	for range *chaosKills {
		s.rest(time.Duration(10+random.IntN(140)) * time.Millisecond)
		s.kill()
		if random.IntN(4) == 0 {
			cmd := exec.Command(s.cmd.Path, s.cmd.Args[1:]...)
			if err := cmd.Start(); err != nil {
				s.t.Fatal(err)
			}
			s.rest(time.Duration(random.IntN(80)) * time.Millisecond)
			_ = cmd.Process.Kill() // it may have ended by itself
			_ = cmd.Wait()         // that it was killed is no news
		}
		s.boot()
		s.publish()
	}
}

// rest waits in real time: a process that is killed knows no other.
func (s *storm) rest(d time.Duration) {
	select {
	case <-s.over:
	case <-time.After(d):
	}
}

func (s *storm) stopped() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// postTurns posts turns, in all modes, until the storm is over.
func (s *storm) postTurns(n int) {
	random := rand.New(rand.NewPCG(s.seed, uint64(n+1)))
	var id session.ID
	var last session.TurnID
	for i := 0; !s.stopped(); i++ {
		if i%turnsASession == 0 {
			var made session.Session
			if s.insist("POST", "/v1/sessions", map[string]any{}, "", &made) == 0 {
				return
			}
			id, last = made.ID, ""
			s.mu.Lock()
			s.sessions = append(s.sessions, id)
			s.mu.Unlock()
		}
		sub := session.Submission{Input: fmt.Sprintf("write c%d-%d", n, i), Mode: session.ModeEnqueue}
		switch draw := random.IntN(8); {
		case draw == 0:
			sub.Mode = session.ModeInterrupt
		case draw == 1 && last != "":
			sub.Mode, sub.ExpectedTurn = session.ModeSteer, last
		}
		if turn, ok := s.submit(random, id, sub); ok {
			last = turn
		}
		for random.IntN(6) > 0 && last != "" && !s.stopped() && !s.ended(id, last) {
			s.rest(5 * time.Millisecond)
		}
	}
}

// submit posts a turn until it is accepted, and sometimes once more.
func (s *storm) submit(random *rand.Rand, id session.ID, sub session.Submission) (session.TurnID, bool) {
	var turn, again session.Turn
	switch s.insist("POST", turnsOf(id), sub, sub.Input, &turn) {
	case 0, http.StatusConflict: // over, or too late to steer
		return "", false
	}
	s.mu.Lock()
	s.accepted[sub.Input] = turn.ID
	s.mu.Unlock()
	if random.IntN(4) == 0 && s.insist("POST", turnsOf(id), sub, sub.Input, &again) == http.StatusAccepted && again.ID != turn.ID {
		s.t.Errorf("the key of %q gave %s and then %s", sub.Input, turn.ID, again.ID)
	}
	return turn.ID, true
}

func (s *storm) ended(id session.ID, turn session.TurnID) bool {
	var t session.Turn
	return s.insist("GET", turnsOf(id)+"/"+string(turn), nil, "", &t) == http.StatusOK && t.State.Ended()
}

// insist repeats a request until the server answers it with success or a conflict,
// and returns the status; 0 when the storm is over before.
func (s *storm) insist(method, path string, body any, key string, into any) int {
	encoded, err := json.Marshal(body)
	if err != nil {
		s.t.Error(err)
		return 0
	}
	for ; !s.stopped(); s.rest(5 * time.Millisecond) {
		request, err := http.NewRequestWithContext(s.t.Context(), method, *s.url.Load()+path, bytes.NewReader(encoded))
		if err != nil {
			s.t.Error(err)
			return 0
		}
		request.Header.Set("Content-Type", "application/json")
		if key != "" {
			request.Header.Set("Idempotency-Key", strings.ReplaceAll(key, " ", "-"))
		}
		answer, err := s.quick.Do(request)
		if err != nil {
			continue // it has been killed
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close() // it was read
		switch status := answer.StatusCode; {
		case err != nil || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		case status == http.StatusConflict:
			return status
		case status >= 300:
			s.t.Errorf("%s %s: %s %s", method, path, answer.Status, text)
			return 0
		case json.Unmarshal(text, into) != nil:
			s.t.Errorf("%s %s: %s", method, path, text)
			return 0
		default:
			return status
		}
	}
	return 0
}

// check holds what was promised against what is there.
func (s *storm) check() {
	lines := map[string]int{}
	said := map[string]int{}
	turns := map[session.TurnID]session.Turn{}
	for _, id := range s.sessions {
		for _, turn := range pages[session.Turn](s.client, turnsOf(id)) {
			if !turn.State.Ended() {
				turn = s.await(id, turn.ID)
			}
			turns[turn.ID] = turn
		}
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "ran"))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		lines[strings.TrimSpace(line)]++
	}
	for line, n := range lines {
		if n > 1 {
			s.t.Errorf("%s was written %d times", line, n)
		}
	}
	for _, id := range s.sessions {
		s.inOrder(id)
		items := s.items(id)
		s.checkCalls(items, lines)
		for _, item := range items {
			if item.UserMessage != nil {
				said[item.UserMessage.Text]++
			}
		}
	}
	for input, turn := range s.accepted {
		// One that waited to steer a turn and one that ran are in the history alike.
		if said[input] != 1 || !turns[turn].State.Ended() {
			s.t.Errorf("%q was accepted as turn %s and is %d times in the history", input, turn, said[input])
		}
	}
	if problems := s.model.Problems(); len(problems) > 0 {
		s.t.Errorf("the model refused: %s", strings.Join(problems, "; "))
	}
	if wedged := s.metric("sessions_wedged"); wedged != "0" {
		s.t.Errorf("%s sessions are wedged", wedged)
	}
	s.t.Logf("%d turns in %d sessions, %d commands", len(s.accepted), len(s.sessions), len(lines))
	if len(s.accepted) < *chaosKills/2 {
		s.t.Errorf("only %d turns were accepted", len(s.accepted))
	}
}

// checkCalls holds the results against what was written: what succeeded was done, and
// what says that it never started was not.
func (s *storm) checkCalls(items []session.Item, lines map[string]int) {
	commands := map[int64]string{}
	for _, item := range items {
		switch {
		case item.ToolCall != nil:
			var arguments struct{ Command string }
			if err := json.Unmarshal(item.ToolCall.Arguments, &arguments); err != nil {
				s.t.Error(err)
			}
			commands[item.N] = strings.Fields(arguments.Command)[1]
		case item.ToolResult != nil:
			line, result := commands[item.ToolResult.CallN], item.ToolResult
			if !result.Failed && lines[line] != 1 || strings.HasSuffix(result.Summary, "never started") && lines[line] != 0 {
				s.t.Errorf("%s was written %d times, its result is %q", line, lines[line], result.Summary)
			}
		}
	}
}
