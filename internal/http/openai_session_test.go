package http

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loadline/internal/session"
)

// refusing takes no turns, and remembers which sessions are deleted.
type refusing struct {
	*fake
	deleted []session.ID
}

func (r *refusing) SubmitAndFollow(context.Context, session.ID, session.Submission, *session.SubmitKey) (session.Turn, bool, Subscription, error) {
	return session.Turn{}, false, nil, session.ErrQueueFull
}

func (r *refusing) Delete(_ context.Context, id session.ID) error {
	r.deleted = append(r.deleted, id)
	return nil
}

func TestChatTakesBackTheSessionOfARefusedTurn(t *testing.T) {
	r := &refusing{fake: &fake{}}
	s := newTestServer(t, r.fake, func(c *Config) { c.Turns, c.Sessions = r, r })
	wantFailure(t, ask(t, s, "POST", chatPath, chatBody, "Loadline-Session: "+string(testSession)), "queue_full")
	if len(r.deleted) > 0 {
		t.Fatal("a session that the client named was deleted")
	}
	wantFailure(t, ask(t, s, "POST", chatPath, chatBody), "queue_full")
	if len(r.deleted) != 1 || r.deleted[0] != testSession {
		t.Errorf("deleted %v, want the new session", r.deleted)
	}
}

func TestChatImportsTheHistory(t *testing.T) {
	tests := []struct{ name, before, want string }{
		{"none", ``, ""},
		{"instructions alone", `{"role":"system","content":"be brief"},`, ""},
		{"nothing said", `{"role":"user","content":""},{"role":"assistant","content":" "},`, ""},
		{"a conversation", `{"role":"system","content":"x"},{"role":"user","content":"a"},{"role":"assistant","content":"b"},`, `[{"role":"system","content":"x"},{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`},
		{"calls", `{"role":"assistant","content":null,"tool_calls":[{}]},`, `[{"role":"assistant","content":null,"tool_calls":[{}]}]`},
		{"something foreign", `{"role":"oracle","content":"b"},`, `[{"role":"oracle","content":"b"}]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			imports, f := &transferring{}, &fake{sub: scripted(rich())}
			s := newTestServer(t, f, func(c *Config) { c.Transfers = imports })
			ask(t, s, "POST", chatPath, strings.Replace(chatBody, "[", "["+test.before, 1))
			if got := strings.Join(imports.asked, "|"); test.want != "" && got != test.want+"|default|openai|" || test.want == "" && (got != "" || len(f.created) != 1) {
				t.Errorf("imported %q, made %d sessions, want %q", got, len(f.created), test.want)
			}
			if len(f.submitted) != 1 || f.submitted[0].input != "go" {
				t.Errorf("submitted %+v", f.submitted)
			}
		})
	}
}

// A tool is silent for long: an answer that is not streamed lives on beyond every time
// limit of ordinary routes.
func TestChatWaitsForASlowTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener, sub := newPipes(), newScript()
		s := newTestServer(t, &fake{sub: sub})
		defer serve(t, s, listener)()
		client, answer := listener.dial(t, "POST "+chatPath+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(chatBody))+"\r\n\r\n"+chatBody)
		defer client.Close()
		time.AfterFunc(20*time.Minute, func() { sub.events <- rich() })
		response, err := http.ReadResponse(answer, nil)
		must(t, err)
		text, err := io.ReadAll(response.Body)
		must(t, err)
		if response.StatusCode != 200 || !strings.Contains(string(text), "let me see it") {
			t.Errorf("answer %d %s", response.StatusCode, text)
		}
		<-sub.closed
	})
}

// A client that leaves ends its request, and the server one that waits.
func TestChatEndsWithoutItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			name string
			end  func(client io.Closer, stop func())
		}{
			{"client leaves", func(client io.Closer, _ func()) { must(t, client.Close()) }},
			{"server stops", func(_ io.Closer, stop func()) { stop() }},
		} {
			listener, sub := newPipes(), newScript(rich()[:5])
			s := newTestServer(t, &fake{sub: sub})
			stop := sync.OnceFunc(serve(t, s, listener))
			client, _ := listener.dial(t, "POST "+chatPath+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(chatBody))+"\r\n\r\n"+chatBody)
			synctest.Wait()
			go func() { _, _ = io.Copy(io.Discard, client) }()
			test.end(client, stop)
			<-sub.closed
			stop()
		}
	})
}
