package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"loadline/internal/manifest"
)

// newServe makes the command that runs the server.
func newServe(use string, stdout, stderr io.Writer) *cobra.Command {
	var files []string
	var over manifest.Flags
	c := &cobra.Command{
		Use: use, Short: "Run the server",
		Long: `Run the server until a signal: it lets turns that run end within server.drain_timeout,
and interrupts the others; a second signal stops at once. On a terminal the log is for
people, elsewhere it is JSON. Flags beat the manifest.`,
		Example: "  server serve --manifest loadline.toml --listen 127.0.0.1:0",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 && use == "serve" {
				return fmt.Errorf("serve takes no %q; a manifest is given with --manifest", args[0])
			}
			if len(args) > 0 {
				return fmt.Errorf("there is no command %q", args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			m, err := over.Load(files...)
			if err != nil {
				return err
			}
			return run(m, stdout, newLog(stderr))
		},
	}
	manifestFlags(c, &files, &over)
	c.Flags().StringVar(&over.Listen, "listen", "", "address, for example 127.0.0.1:8080; port 0 picks a free one")
	c.Flags().StringVar(&over.Model, "model", "", "`PROVIDER/NAME` of the model: openai/…, anthropic/…, demo")
	return c
}

// manifestFlags are those that say where a server's data are.
func manifestFlags(c *cobra.Command, files *[]string, over *manifest.Flags) {
	c.Flags().StringArrayVar(files, "manifest", nil, "manifest `FILE`; several are layered in their order")
	c.Flags().StringVar(&over.Data, "data", "", "data folder")
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
