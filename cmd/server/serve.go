package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"loadline"
	"loadline/internal/host"
	"loadline/internal/http"
	"loadline/internal/manifest"
	"loadline/internal/session"
	"loadline/internal/store"
	"loadline/internal/stream"
	"loadline/internal/tool"
	"loadline/internal/worker"
)

// shutdownTimeout bounds how long requests in flight are waited for at the stop.
const shutdownTimeout = time.Second

// stringList is a flag that may be given several times.
type stringList []string

func (l *stringList) String() string { return fmt.Sprint(*l) }

func (l *stringList) Set(s string) error {
	*l = append(*l, s)
	return nil
}

func serve(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	var (
		files stringList
		over  manifest.Flags
	)
	flags.Var(&files, "manifest", "")
	flags.StringVar(&over.Listen, "listen", "", "")
	flags.StringVar(&over.Data, "data", "", "")
	flags.StringVar(&over.Model, "model", "", "")
	if done, err := parse(flags, args, stdout, stderr); done {
		return err
	}
	if flags.NArg() > 0 {
		return wrong(stderr, "serve takes no %q; a manifest is given with --manifest", flags.Arg(0))
	}
	m, err := over.Load(files...)
	if err != nil {
		return err
	}
	return run(m, stdout, newLog(stderr))
}

// newLog writes for people on a terminal, and JSON elsewhere.
func newLog(w io.Writer) zerolog.Logger {
	if f, ok := w.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		w = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly}
	}
	return zerolog.New(w).With().Timestamp().Logger()
}

// run serves until a signal, then stops: turns, streams, requests, store. A second
// signal stops at once.
func run(m *manifest.Manifest, stdout io.Writer, log zerolog.Logger) error {
	for _, w := range m.UnknownTools(toolNames()) {
		log.Warn().Str("tool", w.Tool).Str("key", w.Key).Str("file", w.File).Int("line", w.Line).Msg("the manifest names a tool that this server does not have")
	}
	listener, err := net.Listen("tcp", m.Server.Listen)
	if err != nil {
		return listenError(m.Server.Listen, err)
	}
	defer listener.Close()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	s, err := open(m, log)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(listener) }()
	if err := s.host.Recover(context.Background()); err != nil {
		log.Error().Err(err).Msg("not every session could be recovered")
	}
	s.ready.Store(true)
	greet(stdout, m, listener.Addr())
	log.Info().Str("address", "http://"+listener.Addr().String()).Str("data", m.Store.Dir).Msg("ready")

	var failed error
	select {
	case sig := <-signals:
		log.Info().Str("signal", sig.String()).Msg("stopping")
	case failed = <-served:
		log.Error().Err(failed).Msg("the listener failed; stopping")
	}
	go func() {
		<-signals
		log.Warn().Msg("stopped at once")
		os.Exit(1)
	}()
	return errors.Join(failed, s.stop(time.Duration(m.Server.DrainTimeout)))
}

func listenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use by another program; choose another address with --listen or server.listen (port 0 picks a free one)", address)
	}
	return fmt.Errorf("listen on %s: %w", address, err)
}

// server is everything that runs.
type server struct {
	projects *projects
	store    *store.Store
	host     *host.Host
	http     *http.Server
	ready    atomic.Bool
}

// open wires the server. It takes no requests yet.
func open(m *manifest.Manifest, log zerolog.Logger) (s *server, err error) {
	s = &server{}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.projects, err = openProjects(m); err != nil {
		return nil, err
	}
	if s.store, err = store.Open(context.Background(), m.Store.Dir, log); err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if s.host, err = s.newHost(m, registry, log); err != nil {
		return nil, err
	}
	s.http, err = http.New(http.Config{
		Sessions: sessions{s.host, s.store}, SessionLog: s.store,
		Turns: s.host, TurnLog: s.store,
		Streams: s.host, History: s.store, Projects: s.projects,
		Contract: loadline.Contract(),
		Metrics:  promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		Ready:    s.readiness,
		Log:      log,
		Settings: m.Server,
	})
	return s, err
}

func (s *server) newHost(m *manifest.Manifest, registry *prometheus.Registry, log zerolog.Logger) (*host.Host, error) {
	metrics := worker.NewMetrics(registry, toolNames(), providerNames())
	all, err := s.projects.hosts(metrics, log)
	if err != nil {
		return nil, err
	}
	lost, err := newHostProject(m.Settings, orphan{}, tool.NewSet(), metrics, log)
	if err != nil {
		return nil, err
	}
	streams := stream.NewMetrics(registry)
	return host.New(host.Config{
		Store: s.store,
		NewTopic: func(id session.ID, lastSeq int64) host.Topic {
			return topic{stream.NewTopic(id, lastSeq, s.store, streams)}
		},
		Projects:       all,
		DefaultProject: m.DefaultProject(),
		Orphan:         lost,
		Registry:       registry,
		Log:            log,
	}), nil
}

func (s *server) readiness() error {
	if !s.ready.Load() {
		return errors.New("sessions are being restored")
	}
	return nil
}

// stop ends turns and streams, then requests, then the store.
func (s *server) stop(drain time.Duration) error {
	s.ready.Store(false)
	s.host.Stop(drain)
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // what was still in flight has been dropped
	}
	return errors.Join(err, s.close())
}

func (s *server) close() error {
	if s.projects != nil {
		s.projects.close()
	}
	if s.store != nil {
		return s.store.Close()
	}
	return nil
}

// topic lets the host use a stream without knowing its package.
type topic struct{ *stream.Topic }

func (t topic) Subscribe(c session.Cursor) host.Subscription { return t.Topic.Subscribe(c) }

// sessions is the host for what concerns live sessions, the store for the rest.
type sessions struct {
	*host.Host
	store *store.Store
}

func (s sessions) Update(ctx context.Context, id session.ID, title *string, metadata map[string]string) (session.Session, error) {
	return s.store.UpdateSession(ctx, id, title, metadata)
}

// greet tells a person where the server is and what to try.
func greet(w io.Writer, m *manifest.Manifest, address net.Addr) {
	url := "http://" + address.String()
	fmt.Fprintf(w, "Loadline %s listens on %s\n", version, url)
	for name, p := range m.Projects {
		fmt.Fprintf(w, "  project %s: %s (%s), model %s\n", name, p.Root, p.Permission, modelName(p.Model))
	}
	if len(m.Server.Keys) > 0 {
		return
	}
	fmt.Fprintf(w, `Try it:
  J='Content-Type: application/json'; S=$(curl -s %[1]s/v1/sessions -H "$J" -d '{}' | grep -om1 'ses_[0-9a-f]*')
  curl -sN %[1]s/v1/sessions/$S/turns -H "$J" -H 'Accept: text/event-stream' -d '{"input":"list the files"}'
`, url)
}

func modelName(m manifest.Model) string {
	if m.Provider == "demo" {
		return "demo (no model is configured)"
	}
	return m.Provider + "/" + m.Name
}
