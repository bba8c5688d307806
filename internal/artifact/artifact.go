// Package artifact keeps the whole of outputs that the limit cut, and has the tool
// that reads them on. Each output is one file, in a folder of its session beside the
// database. The history says what is kept; the files are swept by age and quota, the
// oldest first, and go with their session.
package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"loadline/internal/session"
)

// The codes that a result has when its output is not kept.
const (
	codeQuota = "quota" // it is larger than all that may be kept
	codeIO    = "io"    // the disk refused
)

var errQuota = errors.New("the quota of kept outputs leaves no room for it")

// Log is the history that says which outputs are kept.
type Log interface {
	// Session fails with session.ErrNotFound when it was deleted.
	Session(ctx context.Context, id session.ID) (session.Session, error)
	// Unfinished lists the sessions that have a turn which has not ended.
	Unfinished(ctx context.Context) ([]session.ID, error)
	Item(ctx context.Context, id session.ID, n int64) (session.Item, error)
}

// Config is what a Keeper is made of.
type Config struct {
	Dir        string        // made when the first output is kept
	QuotaBytes int64         // of disk, for all outputs together; each counts as whole blocks
	MaxAge     time.Duration // after which an output is swept
	Log        Log
	Logger     zerolog.Logger
}

// Keeper keeps outputs. It is safe for concurrent use.
type Keeper struct {
	Config
	stop    context.CancelFunc // ends the sweeper
	sweeper sync.WaitGroup

	mu            sync.Mutex // guards the counts; held while files get or lose their names
	keptBytes     int64      // on disk, as far as it is known
	reservedBytes int64      // of outputs that are being written
}

// Open makes a keeper over a folder, which no other process may use, and starts to
// sweep it. Files that a crash left without a result are gone when it returns.
func Open(ctx context.Context, c Config) (*Keeper, error) {
	k := &Keeper{Config: c}
	if err := k.dropUncommitted(ctx); err != nil {
		return nil, fmt.Errorf("kept outputs: %w", err)
	}
	sweeping, stop := context.WithCancel(context.Background())
	k.stop = stop
	k.sweeper.Go(func() { k.keepSweeping(sweeping) })
	return k, nil
}

// Close ends the sweeping. Nothing may be kept any more.
func (k *Keeper) Close() {
	k.stop()
	k.sweeper.Wait()
}

// Keep writes the output of result n of a session to its file, whole and on disk
// before it returns, and says how that went. What stands in its way is logged. A
// file that had this number before is replaced.
func (k *Keeper) Keep(id session.ID, n int64, whole string) session.KeptOutput {
	err := k.write(k.path(id, n), whole)
	if err == nil {
		return session.KeptOutput{Bytes: int64(len(whole))}
	}
	k.Logger.Warn().Err(err).Str("session", string(id)).Int64("n", n).Int("bytes", len(whole)).Msg("tool output not kept")
	if errors.Is(err, errQuota) {
		return session.KeptOutput{Error: codeQuota}
	}
	return session.KeptOutput{Error: codeIO}
}

// Output opens the output of result n, of which so many bytes were kept. It fails
// with session.ErrOutputGone when it is there no more. The caller closes it.
func (k *Keeper) Output(id session.ID, n, keptBytes int64) (io.ReadSeekCloser, error) {
	return k.open(id, n, keptBytes)
}

func (k *Keeper) open(id session.ID, n, keptBytes int64) (*os.File, error) {
	f, err := os.Open(k.path(id, n))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("output %d of %s: %w", n, id, session.ErrOutputGone)
	}
	if err != nil {
		return nil, fmt.Errorf("output %d of %s: %w: %w", n, id, session.ErrStorage, err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() == keptBytes {
		return f, nil
	}
	f.Close()
	if err == nil { // a machine that died may have left it so
		return nil, fmt.Errorf("output %d of %s has %d bytes instead of %d: %w", n, id, info.Size(), keptBytes, session.ErrOutputGone)
	}
	return nil, fmt.Errorf("output %d of %s: %w: %w", n, id, session.ErrStorage, err)
}

// Delete removes all outputs of a session, which runs no turn any more. What cannot
// be removed now is swept later, as the session is gone.
func (k *Keeper) Delete(id session.ID) {
	if err := os.RemoveAll(k.folder(id)); err != nil {
		k.Logger.Warn().Err(err).Str("session", string(id)).Msg("kept outputs of a deleted session are not swept yet")
	}
}

func (k *Keeper) folder(id session.ID) string { return filepath.Join(k.Dir, string(id)) }

func (k *Keeper) path(id session.ID, n int64) string {
	return filepath.Join(k.folder(id), strconv.FormatInt(n, 10))
}
