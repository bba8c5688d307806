package http

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"loadline/internal/session"
)

// listen serves s on a port of its own until the benchmark ends.
func listen(b *testing.B, s *Server) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	b.Cleanup(func() {
		if err := s.Shutdown(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
		if err := <-served; err != nil {
			b.Error(err)
		}
	})
	return l.Addr().String()
}

// Deltas of one token each, one or sixteen waiting at a time, to one reader.
func BenchmarkStream(b *testing.B) {
	for _, bench := range []struct {
		name  string
		batch int
	}{{"one", 1}, {"sixteen", 16}} {
		b.Run(bench.name, func(b *testing.B) {
			delta := sample()[2]
			delta.Delta.Text = "token "
			events := make([]session.Event, bench.batch)
			for i := range events {
				events[i] = delta
			}
			sub := newScript()
			address := listen(b, newTestServer(b, &fake{sub: sub}))
			response, err := http.Get("http://" + address + eventsPath)
			if err != nil {
				b.Fatal(err)
			}
			defer response.Body.Close()
			b.ReportAllocs()
			go func() {
				for range b.N/bench.batch + 1 {
					sub.events <- events
				}
				close(sub.events)
			}()
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// The memory that an idle reader costs the server, stacks and buffers included.
func BenchmarkIdleReader(b *testing.B) {
	const readers = 1000
	address := listen(b, newTestServer(b, &fake{sub: newScript()}))
	inUse := func() (heap, stack uint64) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, m.StackInuse
	}
	heapBefore, stackBefore := inUse()
	for range b.N {
		conns := make([]net.Conn, readers)
		for i := range conns {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				b.Fatal(err)
			}
			conns[i] = conn
			if _, err := io.WriteString(conn, "GET "+eventsPath+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
				b.Fatal(err)
			}
			for lines := bufio.NewReaderSize(conn, 512); ; {
				line, err := lines.ReadString('\n')
				if err != nil {
					b.Fatal(err)
				}
				if strings.TrimSpace(line) == "" {
					break
				}
			}
		}
		heap, stack := inUse()
		b.ReportMetric(float64(heap-heapBefore)/readers, "heap-B/reader")
		b.ReportMetric(float64(stack-stackBefore)/readers, "stack-B/reader")
		for _, conn := range conns {
			conn.Close()
		}
	}
}

// What one delta costs in each form of a stream, writing aside.
func BenchmarkForms(b *testing.B) {
	turn, deltas := session.Turn{ID: testTurn, SessionID: testSession}, make([]session.Event, 1000)
	for i := range deltas {
		deltas[i] = sample()[2]
		deltas[i].Delta = &session.Delta{ItemN: 2, Kind: session.KindAssistantMessage, AtByte: int64(6 * i), Text: "token ", Offset: int64(6*i + 6)}
	}
	for name, form := range map[string]func() translation{
		"native": func() translation { return native{} },
		"ai-sdk": func() translation { return newAISDK() },
		"ag-ui":  func() translation { return &agui{threadID: "t", runID: "r", steps: 1, sent: forwarded{}} },
		"openai": func() translation { return newChatStream(chatRequest{project: "default"}, turn) },
	} {
		b.Run(name, func(b *testing.B) {
			buffer := make([]byte, 0, 1<<20)
			for b.Loop() {
				f := form()
				buffer = buffer[:0]
				for i := range deltas {
					var err error
					if buffer, err = f.event(buffer, &deltas[i]); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(deltas)), "ns/delta")
			b.ReportMetric(float64(len(buffer))/float64(len(deltas)), "B/delta")
		})
	}
}
