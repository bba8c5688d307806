package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

const (
	storedSessions = 10_000
	itemsEach      = 100
	longItems      = 10_000
)

// measureStart times a server from its start to the first 200 of /readyz, with an
// empty data folder and with a full one.
func measureStart(ctx context.Context, l *lab) ([]row, error) {
	empty, err := medianReady(ctx, l, "")
	if err != nil {
		return nil, err
	}
	rows := []row{{what: "start to ready, empty", server: showMS(empty), got: empty, unit: " ms", limit: 60}}
	folder := filepath.Join(l.folder, "full")
	if _, err := fill(ctx, folder, storedSessions, itemsEach); err != nil {
		return rows, fmt.Errorf("start to ready, full: %w", err)
	}
	full, err := medianReady(ctx, l, folder)
	return append(rows, row{
		what: "start to ready, 10,000 sessions of 100 items stored", server: showMS(full), got: full, unit: " ms", limit: 300,
	}), err
}

// medianReady starts and stops servers on a data folder, or each on an empty one.
func medianReady(ctx context.Context, l *lab, dataFolder string) (ms float64, err error) {
	const starts = 7
	samples := make([]float64, starts)
	for i := range samples {
		server, err := l.server(ctx, dataFolder, shortTokens)
		if err != nil {
			return 0, err
		}
		samples[i] = milliseconds(server.readyAfter)
		end(server)
	}
	return median(samples), nil
}

// measureLongHistory times what a person does in a session of 10,000 items.
func measureLongHistory(ctx context.Context, l *lab) ([]row, error) {
	folder := filepath.Join(l.folder, "long")
	ids, err := fill(ctx, folder, 1, longItems)
	if err != nil {
		return nil, err
	}
	server, err := l.server(ctx, folder, shortTokens)
	if err != nil {
		return nil, err
	}
	defer end(server)
	turnsURL := server.url + "/v1/sessions/" + string(ids[0]) + "/turns"
	_, page, err := times(func() error {
		body, err := server.items(ctx, turnsURL, 50, "")
		if err == nil && !strings.Contains(string(body), `"next_cursor"`) {
			err = fmt.Errorf("the first page of %d items is the last one", longItems)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	firstTurn, turn, err := times(func() error {
		_, err := server.turn(ctx, turnsURL)
		return err
	})
	return []row{
		{what: "first page of items, session with 10,000 items", server: showMS(page), got: page, unit: " ms", limit: 10},
		{what: "short turn, session with 10,000 items", server: showMS(turn) + ", the first after a start " + showMS(firstTurn), got: turn, unit: " ms", limit: 45},
	}, err
}

// times repeats what is timed, and returns the first time and the median.
func times(do func() error) (firstMS, medianMS float64, err error) {
	const repeats = 21
	samples := make([]float64, repeats)
	for i := range samples {
		began := time.Now()
		if err := do(); err != nil {
			return 0, 0, err
		}
		samples[i] = milliseconds(time.Since(began))
	}
	return samples[0], median(samples), nil
}

func showMS(ms float64) string { return fmt.Sprintf("%.1f ms", ms) }
