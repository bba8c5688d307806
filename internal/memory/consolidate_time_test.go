package memory

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"loadline/internal/llm"
	"loadline/internal/manifest"
	"loadline/internal/session"
	"loadline/internal/worker"
)

// shelf is a store of one open record, which is never closed.
type shelf struct{}

func (shelf) Document(context.Context, string, session.DocumentName, int64) (session.Document, error) {
	return session.Document{}, session.ErrNotFound
}
func (shelf) Consolidate(context.Context, session.Consolidation) error { return session.ErrStorage }
func (shelf) OpenRecords(context.Context, string, session.RecordID, int) ([]session.Record, error) {
	return []session.Record{{N: 1, ID: "rec_1", Claim: "claim"}}, nil
}
func (shelf) OpenRecordsTotal(context.Context, string) (count, bytes int64, err error) {
	return 1, 5, nil
}

func TestFailedConsolidationIsTriedAgainEverLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Time
		m := &model{}
		for range 100 {
			m.add(reply{make: func(llm.Request) reply {
				asked = append(asked, time.Now())
				return refuses(llm.ClassRetry)
			}})
		}
		settings := manifest.Default().Settings
		settings.Memory.ConsolidationThresholdRecords = 1
		registry := prometheus.NewRegistry()
		k := NewConsolidator(ConsolidatorConfig{Store: shelf{}, Registry: registry, Log: zerolog.Nop(), Projects: map[string]Project{
			project: {Settings: settings.Memory, Limits: settings.Worker.ToolOutput, Consolidation: worker.Config{
				Provider: m, MaxCallsPerStep: 64, ToolTimeout: time.Minute, Metrics: worker.NewMetrics(registry, nil, nil), Log: zerolog.Nop()}},
		}})
		for range 3 {
			k.Staged(project) // while one is on its way there is no other
		}
		<-time.After(24 * time.Hour) // of virtual time
		k.Stop()
		if len(asked) < 20 || len(asked) > 60 {
			t.Errorf("asked %d times in a day", len(asked))
		}
		for i := 1; i < len(asked); i++ {
			wait := asked[i].Sub(asked[i-1])
			usual := min(10*time.Second<<min(i-1, 20), time.Hour)
			if wait < usual/2 || wait > usual*3/2 {
				t.Errorf("wait %d was %s, want about %s", i, wait, usual)
			}
		}
		k.Staged(project)
		synctest.Wait()
		if n := len(asked); n > 60 {
			t.Errorf("asked after the stop: %d", n)
		}
	})
}
