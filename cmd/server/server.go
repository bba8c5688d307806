package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"loadline"
	"loadline/internal/artifact"
	"loadline/internal/host"
	"loadline/internal/http"
	"loadline/internal/manifest"
	"loadline/internal/memory"
	"loadline/internal/session"
	"loadline/internal/store"
	"loadline/internal/stream"
	"loadline/internal/tool"
	"loadline/internal/web"
	"loadline/internal/worker"
)

// shutdownTimeout bounds how long requests in flight are waited for at the stop.
const shutdownTimeout = time.Second

// server is everything that runs.
type server struct {
	projects *projects
	store    *store.Store
	outputs  *artifact.Keeper
	metrics  *worker.Metrics // of all engines
	host     *host.Host
	memory   *memory.Extractor
	folding  *memory.Consolidator
	http     *http.Server
	ready    atomic.Bool
	stopping atomic.Bool
}

// open wires the server. It takes no requests yet.
func open(m *manifest.Manifest, log zerolog.Logger) (_ *server, err error) {
	s := &server{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	// The store comes after all that a wrong manifest can break: it makes a folder.
	if s.projects, err = openProjects(m); err != nil {
		return nil, err
	}
	if s.store, err = store.Open(context.Background(), m.Store.Dir, log); err != nil {
		return nil, err
	}
	if s.outputs, err = openOutputs(m, s.store, log); err != nil {
		return nil, err
	}
	s.projects.remember(s.store)
	s.projects.keep(s.outputs, s.store)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.metrics = worker.NewMetrics(registry, toolNames(), providerNames())
	if s.host, err = s.newHost(m, registry, log); err != nil {
		return nil, err
	}
	s.folding = s.newConsolidator(m, registry, log)
	if s.memory, err = s.newExtractor(m, registry, log); err != nil {
		return nil, err
	}
	if s.http, err = s.newHTTP(m, registry, log); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *server) newHTTP(m *manifest.Manifest, registry *prometheus.Registry, log zerolog.Logger) (*http.Server, error) {
	page, err := web.New()
	if err != nil {
		return nil, err
	}
	return http.New(http.Config{
		Sessions: sessions{s.host, s.store, s.outputs}, SessionLog: s.store,
		Turns: s.host, TurnLog: s.store,
		Streams: s.host, History: s.store, Outputs: s.outputs, Transfers: newTransfers(s.host, s.store, s.projects), Projects: s.projects,
		Memory: s.store, Extraction: s.memory, Page: page,
		Contract: loadline.Contract(),
		Metrics:  promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		Ready:    s.readiness,
		Remarks:  s.remarks,
		Log:      log,
		Settings: m.Server,
	})
}

func (s *server) newHost(m *manifest.Manifest, registry *prometheus.Registry, log zerolog.Logger) (*host.Host, error) {
	all, err := s.projects.hosts(s.metrics, log)
	if err != nil {
		return nil, err
	}
	s.recall(all)
	lost, err := s.projects.newHostProject(m.Settings, model{provider: orphan{}}, tool.NewSet(), s.metrics, log)
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
		TurnEnded:      s.turnEnded,
		MemoryLag:      s.memoryLag,
		Registry:       registry,
		Log:            log,
	}), nil
}

// turnEnded has memory look at a session. While the server starts or stops it does
// not: what that leaves is found at the next start.
func (s *server) turnEnded(id session.ID) {
	if s.ready.Load() {
		s.memory.TurnEnded(id)
	}
}

func (s *server) readiness() error {
	switch {
	case s.stopping.Load():
		return errors.New("the server is stopping")
	case !s.ready.Load():
		return errors.New("sessions are being restored")
	}
	return nil
}

// remarks are what an operator should look at although the server is ready.
func (s *server) remarks() []string {
	held := s.memory.Held()
	if held == 0 {
		return nil
	}
	return []string{fmt.Sprintf("memory does not go forward in some sessions (%d): their next part fails, and no other pass has succeeded since the last dead letter; "+
		"look at the model of [memory.extract_model]", held)}
}

// restore goes on with what an earlier process has left, and is ready then.
func (s *server) restore(ctx context.Context) error {
	err := s.host.Recover(ctx)
	s.ready.Store(true)
	s.folding.Recover()
	return errors.Join(err, s.memory.Recover(ctx))
}

// stop ends turns and streams, then requests, then memory, then the store.
func (s *server) stop(drain time.Duration) error {
	s.ready.Store(false)
	s.host.Stop(drain)
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // what was still in flight has been dropped
	}
	s.memory.Stop()
	s.folding.Stop()
	return errors.Join(err, s.close())
}

func (s *server) close() error {
	var errs []error
	if s.projects != nil {
		errs = append(errs, s.projects.close())
	}
	if s.outputs != nil {
		s.outputs.Close()
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	return errors.Join(errs...)
}

// topic lets the host use a stream without knowing its package.
type topic struct{ *stream.Topic }

func (t topic) Subscribe(c session.Cursor) host.Subscription { return t.Topic.Subscribe(c) }
