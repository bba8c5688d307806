package store

import (
	"context"
	"database/sql"
	"errors"

	"loadline/internal/session"
)

// sweepRows is how many rows of a deleted session one commit removes, so that no
// other write waits long.
const sweepRows = 64

// DeleteSession deletes a session and everything of it. Nothing of it can be read
// when DeleteSession returns; what it filled on disk is overwritten soon after, in
// small steps, also when the process ends before.
func (s *Store) DeleteSession(ctx context.Context, id session.ID) error {
	err := s.write(ctx, "delete "+string(id), func(c *connection) error {
		if _, err := c.exec("bury", id); err != nil {
			return err
		}
		deleted, err := c.exec("delete_session", id)
		if err != nil {
			return err
		}
		if n, err := deleted.RowsAffected(); n == 0 {
			return errors.Join(session.ErrNotFound, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.wakeSweeper()
	return nil
}

// resumeSweep has the sweeper go on where the last process has left it.
func (s *Store) resumeSweep(ctx context.Context) error {
	return s.write(ctx, "open", func(c *connection) error {
		var grave int64
		err := c.queryRow("grave", nil, &grave)
		if err == nil {
			s.wakeSweeper()
		}
		return ignoreNoRows(err)
	})
}

func (s *Store) wakeSweeper() {
	select {
	case s.graves <- struct{}{}:
	default: // it will look anyway
	}
}

// keepSweeping sweeps whenever a session was deleted, until ctx ends.
func (s *Store) keepSweeping(ctx context.Context) {
	for {
		select {
		case <-s.graves:
		case <-ctx.Done():
			return
		}
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn().Err(err).Msg("deleted session is not swept yet")
		}
	}
}

// sweep removes the rows of all deleted sessions.
func (s *Store) sweep(ctx context.Context) error {
	for swept := false; !swept; {
		err := s.write(ctx, "sweep", func(c *connection) (err error) {
			swept, err = sweepSome(c)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepSome removes some rows of one deleted session, or reports that none is left.
func sweepSome(c *connection) (swept bool, err error) {
	var grave int64
	if err := c.queryRow("grave", nil, &grave); err != nil {
		return errors.Is(err, sql.ErrNoRows), ignoreNoRows(err)
	}
	for _, name := range []string{"sweep_log", "sweep_turns", "sweep_submit_keys", "sweep_passes", "sweep_retries", "sweep_letters"} {
		result, err := c.exec(name, grave, sweepRows)
		if err != nil {
			return false, err
		}
		if n, err := result.RowsAffected(); n > 0 || err != nil {
			return false, err
		}
	}
	_, err = c.exec("close_grave", grave)
	return false, err
}

func ignoreNoRows(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}
