package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"loadline/internal/artifact"
	"loadline/internal/host"
	"loadline/internal/http"
	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/memory"
	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/file"
	"loadline/internal/tool/number"
	"loadline/internal/tool/shell"
	"loadline/internal/worker"
)

// toolNames are the tools that this server can have, enabled or not.
func toolNames() []string {
	return append(memory.ToolNames(), "Bash", "Edit", "Glob", "Grep", "Read", artifact.ToolName, "Write", number.ToolName)
}

// providerNames are the providers that a manifest can name.
func providerNames() []string { return []string{"anthropic", "demo", "openai"} }

// projects is what the server runs for each project of its manifest.
type projects struct {
	manifest   *manifest.Manifest
	tools      map[string]*tool.Set
	workspaces []*file.Workspace
	models     models
	keeper     worker.Keeper // nil keeps no outputs
}

// openProjects opens the folders of all projects and makes their tools and models.
func openProjects(m *manifest.Manifest) (*projects, error) {
	p := &projects{manifest: m, tools: map[string]*tool.Set{}}
	hidden := append(m.Files(), m.Store.Dir)
	for _, name := range slices.Sorted(maps.Keys(m.Projects)) {
		if err := p.add(name, m.Projects[name], hidden); err != nil {
			return nil, errors.Join(fmt.Errorf("project %q: %w", name, err), p.close())
		}
	}
	p.models.finish()
	return p, nil
}

func (p *projects) add(name string, project manifest.Project, hidden []string) error {
	wanted := []manifest.Model{project.Model, project.Compaction.Model}
	if project.Memory.Enabled {
		wanted = append(wanted, project.Memory.ExtractModel, project.Memory.ConsolidationModel)
	}
	for _, m := range wanted {
		if err := p.models.add(m); err != nil {
			return err
		}
	}
	captureMaxBytes := project.Worker.ToolOutput.CaptureMaxBytes
	workspace, err := file.Open(project.Root, hidden, captureMaxBytes)
	if err != nil {
		return err
	}
	p.workspaces = append(p.workspaces, workspace)
	all := workspace.ReadTools()
	if project.Permission == manifest.PermissionWrite {
		all = append(all, workspace.WriteTools()...)
	}
	all = append(all, shell.New(shell.Config{Dir: project.Root, CaptureMaxBytes: captureMaxBytes, MaxTimeout: time.Duration(project.Worker.ToolTimeout)}))
	if project.Model.Provider == "demo" {
		all = append(all, number.Primes{})
	}
	all = slices.DeleteFunc(all, func(t tool.Tool) bool { return !project.ToolEnabled(t.Spec().Name) })
	p.tools[name] = tool.NewSet(all...)
	return nil
}

func (p *projects) close() error {
	var errs []error
	for _, w := range p.workspaces {
		errs = append(errs, w.Close())
	}
	return errors.Join(errs...)
}

// hosts makes the engine of each project.
func (p *projects) hosts(metrics *worker.Metrics, log zerolog.Logger) (map[string]host.Project, error) {
	p.models.warn(log)
	all := map[string]host.Project{}
	for name, settings := range p.manifest.Projects {
		made, err := p.newHostProject(settings.Settings, p.models.made[settings.Model], p.tools[name], metrics, log)
		if err != nil {
			return nil, fmt.Errorf("project %q: %w", name, err)
		}
		all[name] = made
	}
	return all, nil
}

func (p *projects) newHostProject(s manifest.Settings, m model, tools *tool.Set, metrics *worker.Metrics, log zerolog.Logger) (host.Project, error) {
	engine, err := worker.New(s.Worker.ToolOutput, worker.Config{
		Provider:        m.provider,
		Window:          m.window,
		Budget:          m.budget,
		Compaction:      p.compaction(s.Compaction),
		Tools:           tools,
		Keeper:          p.keeper,
		Instructions:    s.Worker.Instructions,
		RecallMaxBytes:  s.Memory.RecallMaxBytes,
		MaxSteps:        s.Worker.MaxSteps,
		MaxCallsPerStep: s.Worker.MaxCallsPerStep,
		MaxAttempts:     s.Model.MaxAttempts,
		RetryMaxWait:    time.Duration(s.Model.RetryMaxWait),
		ToolTimeout:     time.Duration(s.Worker.ToolTimeout),
		Metrics:         metrics,
		Log:             log,
	})
	return host.Project{Engine: engine, StallAfter: time.Duration(s.Worker.StallAfter), InterruptOnRestart: s.Worker.OnRestart == "interrupt"}, err
}

func (p *projects) compaction(c manifest.Compaction) worker.Compaction {
	m := p.models.made[c.Model]
	if c.Model.Provider == "demo" {
		m.provider = nil // it cannot sum up
	}
	return worker.Compaction{Provider: m.provider, Window: m.window, Budget: m.budget, MaxCalls: c.MaxCalls, SummaryBytes: c.SummaryMaxBytes}
}

// orphan is the provider of sessions whose project has left the manifest: their
// turns end in words that say so.
type orphan struct{}

func (orphan) Name() string  { return "none" }
func (orphan) Model() string { return "none" }

func (orphan) Ask(context.Context, llm.Request, func(llm.Delta)) (llm.Answer, error) {
	return llm.Answer{}, &llm.Error{Class: llm.ClassFail, Err: errors.New("the session's project is not in the manifest any more; add it again under [projects]")}
}

// List is what a client may know of the projects, by name.
func (p *projects) List() []http.Project {
	var list []http.Project
	for _, name := range slices.Sorted(maps.Keys(p.manifest.Projects)) {
		settings := p.manifest.Projects[name]
		list = append(list, http.Project{
			Name:       name,
			Permission: settings.Permission,
			Model:      settings.Model.Provider + "/" + settings.Model.Name,
			Memory:     settings.Memory.Enabled,
			Default:    name == p.manifest.DefaultProject(),
		})
	}
	return list
}

// Has reports whether there is a project of this name.
func (p *projects) Has(name string) bool {
	_, ok := p.manifest.Projects[name]
	return ok
}

// Tools lists the tools of a project with their effective limits.
func (p *projects) Tools(name string) ([]http.Tool, error) {
	name, err := p.choose(name)
	if err != nil {
		return nil, err
	}
	limits := p.manifest.Projects[name].Worker.ToolOutput
	list := []http.Tool{}
	for _, spec := range p.tools[name].Specs() {
		list = append(list, http.Tool{ToolSpec: spec, LimitBytes: limits.Limit(spec.Name)})
	}
	return list, nil
}

// Manifest is the effective manifest of a project.
func (p *projects) Manifest(name string) (any, error) {
	name, err := p.choose(name)
	if err != nil {
		return nil, err
	}
	return p.manifest.Value(name)
}

// choose finds the project that a client means: an empty name is the only one, or
// the one named default.
func (p *projects) choose(name string) (string, error) {
	if name == "" {
		name = p.manifest.DefaultProject()
	}
	if name == "" {
		return "", session.ErrProjectRequired
	}
	if !p.Has(name) {
		return "", session.ErrUnknownProject
	}
	return name, nil
}
