package http

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loadline/internal/session"
)

// openStream reads the head of a stream's answer.
func openStream(t *testing.T, l *pipes) (io.Closer, *http.Response) {
	t.Helper()
	client, answer := l.dial(t, "GET "+eventsPath+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
	response, err := http.ReadResponse(answer, nil)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != 200 {
		t.Fatalf("status = %d, want 200", response.StatusCode)
	}
	return client, response
}

// A tool is silent for long: the stream lives on beyond every time limit of ordinary
// routes, with a comment at least every 20 s, and the next event arrives.
func TestSilentStreamIsKeptOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener, sub := newPipes(), newScript(sample()[:1])
		s := newTestServer(t, &fake{sub: sub})
		defer serve(t, s, listener)()
		opened := time.Now()
		client, response := openStream(t, listener)
		defer client.Close()
		if time.Since(opened) != 0 {
			t.Errorf("headers came after %s, want at once", time.Since(opened))
		}
		const silence = 5 * time.Minute
		time.AfterFunc(silence, func() {
			sub.events <- sample()[2:3]
			close(sub.events)
		})
		var lines []string
		pings := 0
		last := time.Now()
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); last = time.Now() {
			if time.Since(last) > 20*time.Second {
				t.Errorf("nothing came for %s", time.Since(last))
			}
			if scanner.Text() == ": ping" {
				pings++
				scanner.Scan() // the blank line after it
				continue
			}
			lines = append(lines, scanner.Text())
		}
		if want := int(silence / pingEvery); pings < want-1 || pings > want {
			t.Errorf("%d comments in %s, want one every %s", pings, silence, pingEvery)
		}
		if len(lines) != 8 || lines[0] != "id: 1" || lines[4] != "id: 2.15" || time.Since(opened) != silence {
			t.Errorf("after %s the stream has %q", time.Since(opened), lines)
		}
		<-sub.closed
	})
}

// A ping that is due while a batch is written waits for the end of the batch.
func TestPingsNeverLandInsideEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := sample()[1]
		big.Item.UserMessage.Text = strings.Repeat("x", 300<<10)
		listener, sub := newPipes(), newScript([]session.Event{big, big}, []session.Event{big})
		close(sub.events)
		s := newTestServer(t, &fake{sub: sub})
		defer serve(t, s, listener)()
		client, response := openStream(t, listener)
		defer client.Close()
		var got bytes.Buffer
		for piece := make([]byte, 32<<10); ; {
			n, err := response.Body.Read(piece)
			got.Write(piece[:n])
			if err != nil {
				break
			}
			<-time.After(2 * time.Second) // slower than a ping, faster than the write deadline
		}
		for block := range strings.SplitSeq(strings.TrimSuffix(got.String(), "\n\n"), "\n\n") {
			if block != ": ping" && !(strings.HasPrefix(block, "id: 2\nevent: item\ndata: {") && strings.HasSuffix(block, "}}}")) {
				t.Errorf("block %.80q … is neither a comment nor an event", block)
			}
		}
		if n := strings.Count(got.String(), "event: item"); n != 3 {
			t.Errorf("%d events came, want 3", n)
		}
	})
}

func TestDeadReaderEndsItsSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener, sub := newPipes(), newScript()
		s := newTestServer(t, &fake{sub: sub})
		defer serve(t, s, listener)()
		client, _ := openStream(t, listener)
		defer client.Close()
		started := time.Now()
		sub.events <- sample() // and nobody reads it
		<-sub.closed
		if took := time.Since(started); took != streamWrite {
			t.Errorf("the subscription ended after %s, want %s", took, streamWrite)
		}
	})
}

func TestLeavingReaderEndsItsSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener, sub := newPipes(), newScript()
		s := newTestServer(t, &fake{sub: sub})
		defer serve(t, s, listener)()
		client, _ := openStream(t, listener)
		started := time.Now()
		client.Close()
		<-sub.closed
		if time.Since(started) != 0 {
			t.Errorf("the subscription ended after %s, want at once", time.Since(started))
		}
	})
}

func TestShutdownEndsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener, sub := newPipes(), newScript()
		stop := serve(t, newTestServer(t, &fake{sub: sub}), listener)
		client, response := openStream(t, listener)
		defer client.Close()
		started := time.Now()
		go func() { _, _ = io.Copy(io.Discard, response.Body) }()
		stop()
		<-sub.closed
		if took := time.Since(started); took > time.Second {
			t.Errorf("shutdown took %s", took)
		}
	})
}

func TestShutdownDropsWhatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener, entered, leave := newPipes(), make(chan struct{}), make(chan struct{})
		s := newTestServer(t, &fake{}, func(c *Config) {
			c.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(entered); <-leave })
		})
		served := make(chan error, 1)
		go func() { served <- s.Serve(listener) }()
		client, _ := listener.dial(t, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
		defer client.Close()
		<-entered
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown = %v, want a deadline", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve = %v, want nil", err)
		}
		close(leave)
	})
}

func TestOrdinaryRoutesKeepTheirWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener, failed := newPipes(), make(chan time.Duration, 1)
		s := newTestServer(t, &fake{}, func(c *Config) {
			c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				started := time.Now()
				for {
					if _, err := w.Write(make([]byte, 64<<10)); err != nil {
						failed <- time.Since(started)
						return
					}
				}
			})
		})
		defer serve(t, s, listener)()
		client, _ := listener.dial(t, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
		defer client.Close()
		if took := <-failed; took != writeTimeout {
			t.Errorf("a client that reads nothing held the route for %s, want %s", took, writeTimeout)
		}
	})
}

// broken is a subscription that fails.
type broken struct {
	*script
	err error
}

func (b broken) Next(context.Context) ([]session.Event, error) { return nil, b.err }

func TestFailedSubscriptionEndsTheStream(t *testing.T) {
	for _, err := range []error{io.EOF, session.ErrSlow, fmt.Errorf("read events: %w", session.ErrStorage)} {
		sub := broken{newScript(), err}
		w := ask(t, newTestServer(t, &fake{sub: sub}), "GET", eventsPath, "")
		if w.Code != 200 || w.Body.Len() > 0 {
			t.Errorf("%v: answer %d %q, want an empty stream", err, w.Code, w.Body)
		}
		<-sub.closed
	}
}
