package acceptance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
)

// publicName is the name that the examples of deploy/ give the server.
const publicName = "loadline.example.org"

// proxy is a real one in front of a server.
type proxy struct {
	t       *testing.T
	dir     string // its own; holds the certificate
	address string
	start   func(p *proxy) *exec.Cmd
	cmd     *exec.Cmd
}

// The examples of deploy/ pass a stream on piece by piece; when the proxy dies in
// mid-answer, the reader goes on at the next byte through the one that comes after it.
func TestProxiesStreamAndResume(t *testing.T) {
	for _, c := range []struct {
		name  string
		start func(server string) func(*proxy) *exec.Cmd
	}{
		{"nginx", nginx},
		{"caddy", caddy},
	} {
		t.Run(c.name, func(t *testing.T) {
			gate := make(chan struct{})
			const early, late = "before the gate", " and behind it"
			p := launch(t, fmt.Sprintf("allowed_hosts = [%q]", publicName),
				says("ok"), llmtest.Step{Text: []string{early, late}, Gate: gate, GateAfter: 1})
			front := newProxy(t, c.start(strings.TrimPrefix(p.url, "http://")))
			through := front.client(p)
			id := through.newSession()
			through.say(id, "first")
			stream := through.stream(id, "")
			stream.until(ofType(session.EventTurnCompleted)) // what comes now comes by itself
			through.post(id, "go")
			if got := stream.text(len(early)); got != early {
				t.Fatalf("before the gate opened: %q", got)
			}
			front.kill()
			if ev, err := rest(stream); err == nil || ev != 0 {
				t.Errorf("after the proxy was killed: %d events, %v", ev, err)
			}
			front.run()
			seq, _, _ := strings.Cut(stream.id, ".")
			stream = through.stream(id, seq+".5") // as if the rest had been lost on its way
			if got, want := stream.text(len(early)-5), early[5:]; got != want {
				t.Errorf("after the fifth byte: %q, want %q", got, want)
			}
			close(gate)
			if got := stream.text(len(late)); got != late {
				t.Errorf("after the gate opened: %q, want %q", got, late)
			}
			stream.until(ofType(session.EventTurnCompleted))
			stream.close()
			p.eventually("stream_subscribers", "0")
			if answer, _ := through.send("GET", "/metrics", nil); answer.StatusCode != http.StatusNotFound {
				t.Errorf("/metrics is open to all: %s", answer.Status)
			}
			body := map[string]any{"input": strings.Repeat("x", 2<<20)}
			if answer, text := through.send("POST", turnsOf(id), body); answer.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), `"code"`) {
				t.Errorf("a body that the server refuses, not the proxy: %s %s", answer.Status, text)
			}
		})
	}
}

// rest counts what a stream still brings, until it breaks.
func rest(s *sse) (events int, err error) {
	for ; err == nil; events++ {
		_, err = s.read()
	}
	return events - 1, err
}

// eventually waits until a series has a value.
func (c *client) eventually(series, want string) {
	c.t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	late := time.After(c.patience)
	for got := ""; got != want; {
		select {
		case <-ticker.C:
			got = c.metric(series)
		case <-late:
			c.t.Fatalf("%s is %s, want %s", series, got, want)
		}
	}
}

// newProxy starts a proxy with a certificate of its own on a free port.
func newProxy(t *testing.T, start func(*proxy) *exec.Cmd) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, dir: t.TempDir(), address: listener.Addr().String(), start: start}
	listener.Close()
	p.certify()
	p.run()
	t.Cleanup(p.kill)
	return p
}

// run starts the program and waits until it listens.
func (p *proxy) run() {
	p.t.Helper()
	p.cmd = p.start(p)
	p.cmd.Stdout, p.cmd.Stderr = p.t.Output(), p.t.Output()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatalf("%v: run make tools", err)
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	late := time.After(patience)
	for {
		if conn, err := net.Dial("tcp", p.address); err == nil {
			conn.Close()
			return
		}
		select {
		case <-ticker.C:
		case <-late:
			p.t.Fatalf("%s does not listen on %s", p.cmd.Path, p.address)
		}
	}
}

func (p *proxy) kill() {
	_ = p.cmd.Process.Kill() // it may be gone
	_ = p.cmd.Wait()
}

// client is one that knows the server by its public name and reaches the proxy.
func (p *proxy) client(of *process) *client {
	roots := x509.NewCertPool()
	text, err := os.ReadFile(filepath.Join(p.dir, "cert.pem"))
	if err != nil || !roots.AppendCertsFromPEM(text) {
		p.t.Fatalf("the certificate: %v", err)
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, p.address)
		},
	}
	p.t.Cleanup(transport.CloseIdleConnections)
	c := *of.client
	c.url, c.http = "https://"+publicName, &http.Client{Transport: transport}
	return &c
}

// certify makes cert.pem and key.pem for the public name.
func (p *proxy) certify() {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	now := time.Now()
	wanted := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{publicName}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, wanted, wanted, &key.PublicKey, key)
	if err != nil {
		p.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})))
	p.write("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

func (p *proxy) write(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return path
}
