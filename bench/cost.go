package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// costTurns is how many turns the figures of CPU time and disk are for.
const costTurns = 1000

// measureCPU compares the CPU time of turns, one after the other, and weighs the
// disk that they took.
func measureCPU(ctx context.Context, l *lab) ([]row, error) {
	floor, server, err := l.pair(ctx, "turn", shortTokens)
	if err != nil {
		return nil, err
	}
	defer end(floor)
	floorTime, _, err := cpuOfTurns(ctx, floor)
	if err != nil {
		end(server)
		return nil, err
	}
	serverTime, turnsURL, err := cpuOfTurns(ctx, server)
	if err != nil {
		end(server)
		return nil, err
	}
	rows := []row{{
		what: "CPU seconds per 1000 turns, 1 session", floor: seconds(floorTime), server: seconds(serverTime),
		got: serverTime.Seconds() / floorTime.Seconds(), unit: " × the floor", limit: 3,
	}}
	history, err := server.historyBytes(ctx, turnsURL)
	end(server) // so that its files are as it leaves them
	if err != nil {
		return rows, err
	}
	disk, err := folderBytes(server.dataFolder)
	return append(rows, row{
		what: "disk bytes per byte of history, 1000 short turns", server: fmt.Sprintf("%s of %s", mebibytes(disk), mebibytes(history)),
		got: float64(disk) / float64(history), open: true,
	}), err
}

func cpuOfTurns(ctx context.Context, t *target) (used time.Duration, turnsURL string, err error) {
	if _, err := oneByOne(ctx, t, 50); err != nil { // warms it up
		return 0, "", err
	}
	before, err := t.cpu()
	if err != nil {
		return 0, "", err
	}
	if turnsURL, err = t.turnsURL(ctx); err != nil {
		return 0, "", err
	}
	for range costTurns {
		if _, err := t.turn(ctx, turnsURL); err != nil {
			return 0, "", err
		}
	}
	after, err := t.cpu()
	return after - before, turnsURL, err
}

// historyBytes is the size of a session's items in the form in which they are
// served.
func (t *target) historyBytes(ctx context.Context, turnsURL string) (total int64, err error) {
	cursor := ""
	for {
		body, err := t.items(ctx, turnsURL, 200, cursor)
		if err != nil {
			return 0, err
		}
		var page struct {
			Data       []json.RawMessage `json:"data"`
			NextCursor string            `json:"next_cursor"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return 0, fmt.Errorf("decode a page of items: %w", err)
		}
		for _, item := range page.Data {
			total += int64(len(item))
		}
		if cursor = page.NextCursor; cursor == "" {
			return total, nil
		}
	}
}

// items reads a page of the history to which the turns at turnsURL belong.
func (t *target) items(ctx context.Context, turnsURL string, limit int, cursor string) ([]byte, error) {
	query := url.Values{"limit": {fmt.Sprint(limit)}}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	answer, err := t.do(ctx, "GET", strings.TrimSuffix(turnsURL, "/turns")+"/items?"+query.Encode(), "", "application/json")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

func folderBytes(folder string) (total int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
