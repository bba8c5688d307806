// Package http serves the API of openapi.yaml: routes, trust, strict decoding,
// problems, pages and event streams. Inside it http.X is always net/http.
package http

import (
	"context"
	"errors"
	"fmt"
	stdlog "log"
	"net"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"loadline/internal/manifest"
)

// Bounds of a connection. Streams move their write deadline before each write and
// drop the read deadline; for every other route these stand.
const (
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 20 * time.Second // of a whole request, body included
	writeTimeout      = 30 * time.Second // from the end of the headers on; more than readTimeout, so that a slow body is answered
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 128 << 10 // room for a search that is far too long, which then is told so
)

// errStopping is the cause that ends streams when the server stops.
var errStopping = errors.New("server is stopping")

// Config is what a Server is made of. The interfaces are mandatory; Contract is the
// text of openapi.yaml.
type Config struct {
	Sessions   Sessions
	SessionLog SessionLog
	Turns      Turns
	TurnLog    TurnLog
	Streams    Streams
	History    History
	Outputs    Outputs
	Transfers  Transfers
	Projects   Projects
	Memory     Memory
	Extraction Extraction
	Page       Page

	Contract []byte
	Metrics  http.Handler
	Ready    func() error    // why the server takes no turns yet; nil means always ready
	Remarks  func() []string // what an operator should look at although it takes them; nil means nothing
	Log      zerolog.Logger

	Settings manifest.Server
}

// Server answers HTTP requests. It is safe for concurrent use.
type Server struct {
	config  Config
	handler http.Handler
	server  http.Server
	stream  *streamer
}

// New makes a server. It fails when a key or an allowed origin is malformed.
func New(c Config) (*Server, error) {
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Remarks == nil {
		c.Remarks = func() []string { return nil }
	}
	streams, stop := context.WithCancelCause(context.Background())
	s := &Server{config: c, stream: newStreamer(streams, c.Log)}
	handler, err := s.newHandler()
	if err != nil {
		stop(err)
		return nil, err
	}
	s.handler = handler
	s.server = http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          stdlog.New(c.Log.With().Str("from", "net/http").Logger(), "", 0),
	}
	s.server.RegisterOnShutdown(func() { stop(errStopping) })
	return s, nil
}

// ServeHTTP answers one request, through everything that Serve would apply but the
// time limits of the connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Serve answers the connections of l until Shutdown, and returns nil then.
func (s *Server) Serve(l net.Listener) error {
	if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// Shutdown ends the streams, takes no new connections and waits for the requests in
// flight. When ctx ends first it drops them and returns the cause.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.server.Shutdown(ctx)
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("wait for open requests: %w", err), s.server.Close())
}
