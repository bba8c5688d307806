package main

import (
	"context"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"loadline/internal/host"
	"loadline/internal/manifest"
	"loadline/internal/memory"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/worker"
)

// newExtractor makes what reads sessions for the memory of those projects that have
// one; without any it does nothing.
func (s *server) newExtractor(m *manifest.Manifest, registry *prometheus.Registry, log zerolog.Logger) (*memory.Extractor, error) {
	return memory.NewExtractor(context.Background(), memory.Config{
		Store: s.store, Host: s.host, Projects: s.memoryProjects(m, log), MaxParallel: m.Memory.MaxParallel,
		Secrets: s.projects.models.secrets, Staged: s.folding.Staged, Registry: registry, Log: log,
	})
}

// newConsolidator makes what folds the records of these projects into documents.
func (s *server) newConsolidator(m *manifest.Manifest, registry *prometheus.Registry, log zerolog.Logger) *memory.Consolidator {
	return memory.NewConsolidator(memory.ConsolidatorConfig{
		Store: s.store, Projects: s.memoryProjects(m, log), MaxParallel: m.Memory.MaxParallel,
		Secrets: s.projects.models.secrets, Registry: registry, Log: log,
	})
}

// memoryProjects are the projects that have a memory.
func (s *server) memoryProjects(m *manifest.Manifest, log zerolog.Logger) map[string]memory.Project {
	all := map[string]memory.Project{}
	for name, p := range m.Projects {
		if p.Memory.Enabled {
			all[name] = memory.Project{
				Name: name, Settings: p.Memory, Limits: p.Worker.ToolOutput,
				Engine:        s.memoryEngine(p.Settings, s.projects.models.made[p.Memory.ExtractModel], log),
				Consolidation: s.memoryEngine(p.Settings, s.projects.models.made[p.Memory.ConsolidationModel], log),
			}
		}
	}
	return all
}

// recall has the sessions of these projects told what their project remembers.
func (s *server) recall(projects map[string]host.Project) {
	for name, p := range projects {
		if s.projects.manifest.Projects[name].Memory.Enabled {
			p.Recall = memory.Recall(s.store.Recall)
			projects[name] = p
		}
	}
}

// remember adds the tools that look up a project's memory, where it has one.
func (p *projects) remember(store memory.Remembered) {
	for name, project := range p.manifest.Projects {
		if !project.Memory.Enabled {
			continue
		}
		tools := slices.DeleteFunc(memory.Tools(name, store), func(t tool.Tool) bool { return !project.ToolEnabled(t.Spec().Name) })
		p.tools[name] = p.tools[name].With(tools...)
	}
}

// memoryEngine is what engines of memory have in common with those of turns.
func (s *server) memoryEngine(settings manifest.Settings, m model, log zerolog.Logger) worker.Config {
	return worker.Config{
		Provider:        m.provider,
		Window:          m.window,
		Budget:          m.budget.Background(),
		MaxCallsPerStep: settings.Worker.MaxCallsPerStep,
		RetryMaxWait:    time.Duration(settings.Model.RetryMaxWait),
		ToolTimeout:     time.Duration(settings.Worker.ToolTimeout),
		Metrics:         s.metrics,
		Log:             log,
	}
}

// memoryLag is what extraction has before it in a session; nothing where its project
// has no memory.
func (s *server) memoryLag(ctx context.Context, id session.ID) (session.MemoryLag, error) {
	b, err := s.store.Backlog(ctx, id)
	if p, ok := s.projects.manifest.Projects[b.Project]; err != nil || !ok || !p.Memory.Enabled {
		return session.MemoryLag{}, err
	}
	return session.MemoryLag{Pointer: b.Pointer, Items: b.Items, Bytes: b.Bytes}, nil
}
