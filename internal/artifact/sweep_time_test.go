package artifact

import (
	"testing"
	"testing/synctest"
	"time"

	"loadline/internal/session"
)

func TestSweepingGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, 1<<20)
		synctest.Wait()
		s.Keep(session.NewID(), 1, "of a session that is gone")
		time.Sleep(sweepEvery + time.Second) // virtual
		synctest.Wait()
		s.wantFiles()
		s.Close()
	})
}
