package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	idleReaders   = 1000
	shortSessions = 1000
	// settle is how long memory is left alone before it is read.
	settle = 3 * time.Second
)

// measureMemory reads what a server holds: after its start, with readers of a
// stream on which nothing happens, and after many short sessions.
func measureMemory(ctx context.Context, l *lab) ([]row, error) {
	idle, withReaders, err := memoryAround(ctx, l, holdReaders)
	if err != nil {
		return nil, fmt.Errorf("with idle readers: %w", err)
	}
	rows := []row{
		{what: "memory, idle after start", server: mebibytes(idle), got: inMiB(idle), unit: " MiB", limit: 30, aim: 20},
		{what: "memory, 1000 idle SSE readers", server: mebibytes(withReaders), got: inMiB(withReaders - idle), unit: " MiB more", limit: 30},
	}
	idle, after, err := memoryAround(ctx, l, runShortSessions)
	if err != nil {
		return rows, fmt.Errorf("with many sessions: %w", err)
	}
	return append(rows, row{
		what: "memory, 1000 sessions of one turn each", server: mebibytes(after), got: inMiB(after - idle), unit: " MiB more", limit: 10,
	}), nil
}

// memoryAround reads the resident memory of a new server before a load and while
// what the load returns is held.
func memoryAround(ctx context.Context, l *lab, load func(context.Context, *target) (release func(), err error)) (before, after int64, err error) {
	server, err := l.server(ctx, "", shortTokens)
	if err != nil {
		return 0, 0, err
	}
	defer end(server)
	if before, err = server.settledRSS(ctx); err != nil {
		return 0, 0, err
	}
	release, err := load(ctx, server)
	if err != nil {
		return 0, 0, err
	}
	defer release()
	after, err = server.settledRSS(ctx)
	return before, after, err
}

func (t *target) settledRSS(ctx context.Context) (int64, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(settle):
		return t.rss()
	}
}

// holdReaders opens streams of one session and leaves them open.
func holdReaders(ctx context.Context, t *target) (release func(), err error) {
	turnsURL, err := t.turnsURL(ctx)
	if err != nil {
		return nil, err
	}
	var open []io.Closer
	release = func() {
		for _, stream := range open {
			stream.Close()
		}
	}
	for range idleReaders {
		answer, err := t.do(ctx, http.MethodGet, strings.TrimSuffix(turnsURL, "/turns")+"/events", "", "text/event-stream") //nolint:bodyclose // release closes it
		if err != nil {
			release()
			return nil, fmt.Errorf("open stream %d: %w", len(open)+1, err)
		}
		open = append(open, answer.Body)
	}
	return release, nil
}

// runShortSessions runs one turn in each of many sessions, a few at a time.
func runShortSessions(ctx context.Context, t *target) (release func(), err error) {
	const atATime = 8
	var (
		wg   sync.WaitGroup
		errs [atATime]error
	)
	for i := range errs {
		wg.Go(func() {
			for n := i; n < shortSessions && errs[i] == nil; n += atATime {
				_, errs[i] = oneByOne(ctx, t, 1)
			}
		})
	}
	wg.Wait()
	return func() {}, errors.Join(errs[:]...)
}

func inMiB(n int64) float64 { return float64(n) / (1 << 20) }
