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
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"

	"loadline/internal/manifest"
)

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
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)

	s, err := open(m, log)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(listener) }()
	if err := s.restore(context.Background()); err != nil {
		log.Error().Err(err).Msg("not every session could be recovered")
	}
	greet(stdout, m, listener.Addr())
	log.Info().Str("address", "http://"+listener.Addr().String()).Str("data", m.Store.Dir).Msg("ready")

	var failed error
	select {
	case sig := <-signals:
		s.stopping.Store(true)
		log.Info().Str("signal", sig.String()).Msg("stopping")
	case failed = <-served:
		log.Error().Err(failed).Msg("the listener failed; stopping")
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.stop(time.Duration(m.Server.DrainTimeout)) }()
	select {
	case err := <-stopped:
		return errors.Join(failed, err)
	case <-signals: // what still runs ends with the process, and is recovered
		return errors.New("stopped at once by a second signal; running turns are recovered at the next start")
	}
}

func listenError(address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use by another program; choose another address with --listen or server.listen (port 0 picks a free one)", address)
	}
	return fmt.Errorf("listen on %s: %w", address, err)
}
