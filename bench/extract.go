package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"
)

const (
	extractPairs = 100 // of blocks of turns, one beside an extract and one without
	blockTurns   = 10
)

// measureExtract compares turns of a session while an extract of it is in flight with
// turns without one, on the same server.
func measureExtract(ctx context.Context, l *lab) ([]row, error) {
	slow := &slowModel{asked: make(chan struct{}, 1), release: make(chan struct{})}
	service := httptest.NewServer(slow)
	defer service.Close()
	server, err := l.serverWith(ctx, "", shortTokens, fmt.Sprintf(`
[memory]
enabled = true
extract_threshold_bytes = %d
[memory.extract_model]
provider = "openai"
name = "slow"
base_url = "%s/v1"
`, 1<<30, service.URL)) // nothing is read unless it is asked for
	if err != nil {
		return nil, err
	}
	defer end(server)
	without, with, ratio, err := compareBlocks(ctx, server, slow)
	if err != nil {
		return nil, err
	}
	return []row{{
		what: "short turn while an extract of its session runs", floor: fmt.Sprintf("%.2f ms without it", without), server: fmt.Sprintf("%.2f ms", with),
		got: 100 * (ratio - 1), unit: " % more", limit: 5,
	}}, nil
}

// compareBlocks runs blocks in pairs, one of each sort, which is first by turns. It
// returns the medians of all blocks, and the median of the pairs' ratios: what else the
// machine does changes from pair to pair more than within one. The first pair warms
// the server up.
func compareBlocks(ctx context.Context, server *target, slow *slowModel) (without, with, ratio float64, err error) {
	var times [2][]float64
	var ratios []float64
	for pair := range extractPairs + 1 {
		var block [2]float64
		for i := range block {
			sort := (pair + i) % 2 // 1: beside an extract
			if block[sort], err = turnsBeside(ctx, server, slow, sort == 1); err != nil {
				return 0, 0, 0, err
			}
		}
		if pair > 0 {
			times[0], times[1] = append(times[0], block[0]), append(times[1], block[1])
			ratios = append(ratios, block[1]/block[0])
		}
	}
	return median(times[0]), median(times[1]), median(ratios), nil
}

// turnsBeside returns the median of turns, in milliseconds, of a new session, beside
// an extract of its first one or alone.
func turnsBeside(ctx context.Context, server *target, slow *slowModel, extract bool) (ms float64, err error) {
	turnsURL, err := server.turnsURL(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := server.turn(ctx, turnsURL); err != nil {
		return 0, err
	}
	sessionURL := strings.TrimSuffix(turnsURL, "/turns")
	if extract {
		if err := server.beginExtract(ctx, sessionURL, slow); err != nil {
			return 0, err
		}
	}
	times := make([]float64, blockTurns)
	for i := range times {
		turn, err := server.turn(ctx, turnsURL)
		if err != nil {
			return 0, err
		}
		times[i] = milliseconds(turn.whole)
	}
	if extract {
		err = server.endExtract(ctx, sessionURL, slow)
	}
	return median(times), err
}

// beginExtract asks for an extract and waits until its model answers.
func (t *target) beginExtract(ctx context.Context, sessionURL string, slow *slowModel) error {
	answer, err := t.do(ctx, http.MethodPost, sessionURL+"/extract", "", "application/json")
	if err != nil {
		return err
	}
	answer.Body.Close()
	select {
	case <-slow.asked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(startTimeout):
		return errors.New("the model of extraction was not asked")
	}
}

// endExtract has the model come to its end, and waits until the pass is stored. A pass
// that was not in flight until now is an error.
func (t *target) endExtract(ctx context.Context, sessionURL string, slow *slowModel) error {
	select {
	case slow.release <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(startTimeout):
		return errors.New("the extract has ended before the turns beside it")
	}
	var passes struct{ Data []struct{ Outcome string } }
	for poll := time.NewTicker(pollEvery); len(passes.Data) == 0; <-poll.C {
		answer, err := t.do(ctx, http.MethodGet, sessionURL+"/passes", "", "application/json")
		if err != nil {
			return err
		}
		err = json.NewDecoder(answer.Body).Decode(&passes)
		answer.Body.Close()
		if err != nil {
			return err
		}
	}
	if outcome := passes.Data[0].Outcome; outcome != "empty" {
		return fmt.Errorf("the extract ended as %s", outcome)
	}
	return nil
}
