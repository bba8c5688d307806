package main

import (
	"context"
	"encoding/json"
	"errors"
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

// measureCPU compares the CPU time of turns, one after the other, in one session
// and in sessions of usual length, and weighs the disk that the one takes.
func measureCPU(ctx context.Context, l *lab) ([]row, error) {
	floor, server, err := l.pair(ctx, "turn", shortTokens)
	if err != nil {
		return nil, err
	}
	defer end(floor)
	rows, err := compareCPU(ctx, floor, server)
	end(server)
	if err != nil {
		return rows, err
	}
	disk, err := weighDisk(ctx, l)
	return append(rows, disk), err
}

func compareCPU(ctx context.Context, floor, server *target) (rows []row, err error) {
	if _, err := cpuOfTurns(ctx, floor, 100); err != nil { // warms it up
		return nil, err
	}
	if _, err := cpuOfTurns(ctx, server, 100); err != nil {
		return nil, err
	}
	for _, each := range []struct {
		what  string
		turns int // of a session
		open  bool
	}{
		{"CPU seconds per 1000 turns, 1 session", costTurns, false},
		{"the same, sessions of 50 turns", 50, true},
	} {
		var ofFloor, ofServer time.Duration
		for range costTurns / each.turns {
			floorTime, errFloor := cpuOfTurns(ctx, floor, each.turns)
			serverTime, errServer := cpuOfTurns(ctx, server, each.turns)
			if err := errors.Join(errFloor, errServer); err != nil {
				return rows, err
			}
			ofFloor += floorTime
			ofServer += serverTime
		}
		rows = append(rows, row{
			what: each.what, floor: seconds(ofFloor), server: seconds(ofServer),
			got: ofServer.Seconds() / ofFloor.Seconds(), unit: " × the floor", limit: 3, open: each.open,
		})
	}
	return rows, nil
}

// cpuOfTurns is the CPU time of the process for turns of one new conversation.
func cpuOfTurns(ctx context.Context, t *target, turns int) (time.Duration, error) {
	before, err := t.cpu()
	if err != nil {
		return 0, err
	}
	if _, err := oneByOne(ctx, t, turns); err != nil {
		return 0, err
	}
	after, err := t.cpu()
	return after - before, err
}

// weighDisk compares the data folder of a stopped server with the history in it.
func weighDisk(ctx context.Context, l *lab) (row, error) {
	server, err := l.server(ctx, "", shortTokens)
	if err != nil {
		return row{}, err
	}
	history, err := runAndRead(ctx, server)
	end(server)
	if err != nil {
		return row{}, err
	}
	disk, err := folderBytes(server.dataFolder)
	return row{
		what: "disk bytes per byte of history, 1000 short turns", server: fmt.Sprintf("%s of %s", mebibytes(disk), mebibytes(history)),
		got: float64(disk) / float64(history), limit: 1.5, aim: 1.4,
	}, err
}

func runAndRead(ctx context.Context, server *target) (historyBytes int64, err error) {
	turnsURL, err := server.turnsURL(ctx)
	if err != nil {
		return 0, err
	}
	for range costTurns {
		if _, err := server.turn(ctx, turnsURL); err != nil {
			return 0, err
		}
	}
	return server.historyBytes(ctx, turnsURL)
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
