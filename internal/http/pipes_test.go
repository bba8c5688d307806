package http

import (
	"bufio"
	"io"
	"net"
	"sync"
	"testing"
)

// pipes is a listener whose connections live in memory, so that time in a synctest
// bubble passes while both ends wait.
type pipes struct {
	accept chan net.Conn
	done   chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{accept: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { p.once.Do(func() { close(p.done) }); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// dial connects and sends a raw request.
func (p *pipes) dial(t testing.TB, request string) (net.Conn, *bufio.Reader) {
	t.Helper()
	client, server := net.Pipe()
	p.accept <- server
	if _, err := io.WriteString(client, request); err != nil {
		t.Fatal(err)
	}
	return client, bufio.NewReader(client)
}
