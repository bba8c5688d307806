package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/memory"
	"loadline/internal/worker"
)

// newExtractor makes what reads sessions for the memory of those projects that have
// one; without any it does nothing.
func (s *server) newExtractor(m *manifest.Manifest, registry *prometheus.Registry, log zerolog.Logger) (*memory.Extractor, error) {
	all := map[string]memory.Project{}
	for name, p := range m.Projects {
		if p.Memory.Enabled {
			all[name] = memory.Project{
				Name: name, Settings: p.Memory, Limits: p.Worker.ToolOutput,
				Engine: s.memoryEngine(p.Settings, s.projects.providers[p.Memory.ExtractModel], log),
			}
		}
	}
	return memory.NewExtractor(context.Background(), memory.Config{
		Store: s.store, Host: s.host, Projects: all, MaxParallel: m.Memory.MaxParallel,
		Secrets: s.projects.secrets, Registry: registry, Log: log,
	})
}

// memoryEngine is what engines of memory have in common with those of turns.
func (s *server) memoryEngine(settings manifest.Settings, provider llm.Provider, log zerolog.Logger) worker.Config {
	return worker.Config{
		Provider:        provider,
		MaxCallsPerStep: settings.Worker.MaxCallsPerStep,
		RetryMaxWait:    time.Duration(settings.Model.RetryMaxWait),
		ToolTimeout:     time.Duration(settings.Worker.ToolTimeout),
		Metrics:         s.metrics,
		Log:             log,
	}
}
