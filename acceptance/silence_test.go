package acceptance

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"loadline/internal/llm/demo"
	"loadline/internal/session"
	"loadline/internal/tool"
)

// pipes is a network in memory, so that a whole server can run in virtual time.
type pipes struct {
	accept chan net.Conn
	done   chan struct{}
	close  func()
}

func newPipes() *pipes {
	p := &pipes{accept: make(chan net.Conn), done: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.done) })
	return p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.close(); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.accept <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// inVirtualTime runs a test on a whole server whose clock runs when all wait. Its
// model is the demo, which calls the tool that it is told to.
func inVirtualTime(t *testing.T, tools []tool.Tool, test func(*testing.T, *world)) {
	synctest.Test(t, func(t *testing.T) {
		network := newPipes()
		transport := &http.Transport{DialContext: network.dial}
		t.Cleanup(transport.CloseIdleConnections)
		test(t, start(t, setup{
			manifest: "[worker]\ntool_timeout = \"1h\"\n", tools: tools, listener: network,
			http: &http.Client{Transport: transport}, provider: demo.New(demo.Config{PieceEvery: -1}),
		}))
	})
}

// sleeps is a tool that is silent for as long as its name says.
func sleeps(name string, d time.Duration) tool.Tool {
	return does(name, func(ctx context.Context) (session.Output, error) {
		select {
		case <-time.After(d):
			return session.Output{Summary: "slept"}, nil
		case <-ctx.Done():
			return session.Output{}, context.Cause(ctx)
		}
	})
}

// A silent tool, and then a silent session, cost no stream its life: comments come,
// alone, and what happens then arrives.
func TestA13SilentStreamLivesOn(t *testing.T) {
	inVirtualTime(t, []tool.Tool{sleeps("Sleep", 45*time.Second)}, func(t *testing.T, w *world) {
		id := w.newSession()
		turn := w.post(id, "/Sleep {}")
		s := w.stream(id, "")
		last, comments := time.Now(), 0
		alive := func(text string) {
			if silence := time.Since(last); silence > 20*time.Second {
				t.Errorf("nothing came for %s before %q", silence, text)
			}
			last = time.Now()
			if strings.HasPrefix(text, ":") {
				comments++
			}
		}
		s.lines = bufio.NewReader(&watched{s.lines, alive})
		s.until(func(ev session.Event) bool { return ev.Type.Terminal() && ev.TurnID == turn.ID })
		if comments != 2 && comments != 3 {
			t.Errorf("%d comments in 45 s", comments)
		}
		time.AfterFunc(10*time.Minute, func() { w.post(id, "/help") })
		s.until(ofType(session.EventTurnCompleted))
		if n := w.metric("stream_subscribers"); n != "1" {
			t.Errorf("%s streams are open", n)
		}
		s.close()
		synctest.Wait()
		if n := w.metric("stream_subscribers"); n != "0" {
			t.Errorf("%s streams are open after the client has left", n)
		}
	})
}

// watched tells of each piece that it reads.
type watched struct {
	*bufio.Reader
	seen func(string)
}

func (r *watched) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.seen(string(p[:n]))
	return n, err
}

// A client that stops reading is let go after the write timeout, and its turn, and
// other clients, go on meanwhile.
func TestA14MuteClientIsLetGo(t *testing.T) {
	inVirtualTime(t, []tool.Tool{prints("Echo", "x")}, func(t *testing.T, w *world) {
		id := w.newSession()
		mute, err := w.setup.listener.(*pipes).dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer mute.Close()
		if _, err := fmt.Fprintf(mute, "GET /v1/sessions/%s/events HTTP/1.1\r\nHost: localhost\r\n\r\n", id); err != nil {
			t.Fatal(err)
		}
		head := bufio.NewReader(mute)
		if line, err := head.ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 200") {
			t.Fatalf("answer %q, %v", line, err)
		}
		started := time.Now()
		for range 3 {
			if turn := w.say(id, "/Echo {}"); turn.State != session.TurnCompleted {
				t.Errorf("the turn: %s", turn.State)
			}
		}
		if took := time.Since(started); took > time.Second {
			t.Errorf("three turns took %s beside a mute client", took)
		}
		<-time.After(31 * time.Second)
		if n := w.metric("stream_subscribers"); n != "0" {
			t.Errorf("%s streams are open", n)
		}
	})
}
