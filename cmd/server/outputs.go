package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"loadline/internal/artifact"
	"loadline/internal/host"
	"loadline/internal/manifest"
	"loadline/internal/session"
	"loadline/internal/store"
	"loadline/internal/worker"
)

// outputsName is the folder of the kept outputs in the data folder.
const outputsName = "outputs"

// openOutputs makes the keeper of outputs, beside the database.
func openOutputs(m *manifest.Manifest, db *store.Store, log zerolog.Logger) (*artifact.Keeper, error) {
	return artifact.Open(context.Background(), artifact.Config{
		Dir:        filepath.Join(m.Store.Dir, outputsName),
		QuotaBytes: m.Artifacts.QuotaBytes,
		MaxAge:     time.Duration(m.Artifacts.MaxAge),
		Log:        db,
		Logger:     log,
	})
}

// keep has the engines keep outputs, and their models read them, where the manifest
// wants that.
func (p *projects) keep(keeper *artifact.Keeper, db *store.Store) {
	if !p.manifest.Artifacts.Enabled {
		return
	}
	p.keeper = keeper
	for name, tools := range p.tools {
		if p.manifest.Projects[name].ToolEnabled(artifact.ToolName) {
			p.tools[name] = tools.With(keeper.Tool(db))
		}
	}
}

// sessions is the host for what concerns live sessions, the store for the rest.
type sessions struct {
	*host.Host
	store   *store.Store
	outputs *artifact.Keeper
}

func (s sessions) Update(ctx context.Context, id session.ID, title *string, metadata map[string]string) (session.Session, error) {
	return s.store.UpdateSession(ctx, id, title, metadata)
}

// Delete deletes a session and what is kept of its outputs.
func (s sessions) Delete(ctx context.Context, id session.ID) error {
	if err := s.Host.Delete(ctx, id); err != nil {
		return err
	}
	s.outputs.Delete(id)
	return nil
}

var _ worker.Keeper = (*artifact.Keeper)(nil)
