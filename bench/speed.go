package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// rounds is how often each target is measured, not counting the first, which
// warms it up.
const rounds = 5

// measureFirstText compares the time from a POST to the first text.
func measureFirstText(ctx context.Context, l *lab) ([]row, error) {
	const turns = 50
	floor, server, err := l.pair(ctx, "none", shortTokens)
	if err != nil {
		return nil, err
	}
	defer end(floor, server)
	floorMS, serverMS, err := alternate(ctx, floor, server, func(ctx context.Context, t *target) (float64, error) {
		seen, err := oneByOne(ctx, t, turns)
		if err != nil {
			return 0, err
		}
		times := make([]float64, len(seen))
		for i, turn := range seen {
			times[i] = milliseconds(turn.firstText)
		}
		return median(times), nil
	})
	return []row{{
		what: "time from POST to first text, 1 session", floor: fmt.Sprintf("%.2f ms", floorMS), server: fmt.Sprintf("%.2f ms", serverMS),
		got: serverMS - floorMS, unit: " ms more", limit: 1,
	}}, err
}

// measureThroughput compares short turns of many sessions at once.
func measureThroughput(ctx context.Context, l *lab) ([]row, error) {
	const sessions, turns = 64, 20
	floor, server, err := l.pair(ctx, "turn", shortTokens)
	if err != nil {
		return nil, err
	}
	defer end(floor, server)
	floorRate, serverRate, err := alternate(ctx, floor, server, func(ctx context.Context, t *target) (float64, error) {
		_, elapsed, err := atOnce(ctx, t, sessions, turns)
		return sessions * turns / elapsed.Seconds(), err
	})
	return []row{{
		what: "turns/s, 64 sessions, 20 tokens a turn", floor: fmt.Sprintf("%.0f", floorRate), server: fmt.Sprintf("%.0f", serverRate),
		got: 100 * serverRate / floorRate, unit: " %", limit: 60, aim: 80, atLeast: true,
	}}, err
}

// measureStreaming compares how fast long answers come through.
func measureStreaming(ctx context.Context, l *lab) ([]row, error) {
	const sessions, turns = 8, 5
	const wantBytes = sessions * turns * longTokens * tokenBytes
	floor, server, err := l.pair(ctx, "none", longTokens)
	if err != nil {
		return nil, err
	}
	defer end(floor, server)
	floorRate, serverRate, err := alternate(ctx, floor, server, func(ctx context.Context, t *target) (float64, error) {
		streamed, elapsed, err := atOnce(ctx, t, sessions, turns)
		if err == nil && streamed != wantBytes {
			err = fmt.Errorf("%s streamed %d bytes of text, want %d", t.name, streamed, wantBytes)
		}
		return float64(streamed) / tokenBytes / elapsed.Seconds(), err
	})
	return []row{{
		what: "streamed tokens/s, 8 sessions, one reader each", floor: fmt.Sprintf("%.0f", floorRate), server: fmt.Sprintf("%.0f", serverRate),
		got: 100 * serverRate / floorRate, unit: " %", limit: 50, aim: 80, atLeast: true,
	}}, err
}

// alternate measures both targets in turn, so that whatever else the machine does
// touches both, and returns the median of each.
func alternate(ctx context.Context, floor, server *target, measure func(context.Context, *target) (float64, error)) (ofFloor, ofServer float64, err error) {
	samples := map[*target][]float64{}
	for round := range rounds + 1 {
		for _, t := range []*target{floor, server} {
			sample, err := measure(ctx, t)
			if err != nil {
				return 0, 0, err
			}
			if round > 0 {
				samples[t] = append(samples[t], sample)
			}
		}
	}
	return median(samples[floor]), median(samples[server]), nil
}

// oneByOne runs turns of one new conversation.
func oneByOne(ctx context.Context, t *target, turns int) ([]took, error) {
	url, err := t.turnsURL(ctx)
	if err != nil {
		return nil, err
	}
	seen := make([]took, turns)
	for i := range seen {
		if seen[i], err = t.turn(ctx, url); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// atOnce runs turns in each of many new conversations at the same time, and
// returns the bytes of text that came, and the time from the first POST to the
// end of the last answer.
func atOnce(ctx context.Context, t *target, conversations, turns int) (textBytes int64, elapsed time.Duration, err error) {
	urls := make([]string, conversations)
	for i := range urls {
		if urls[i], err = t.turnsURL(ctx); err != nil {
			return 0, 0, err
		}
	}
	var (
		wg    sync.WaitGroup
		bytes = make([]int64, conversations)
		errs  = make([]error, conversations)
	)
	began := time.Now()
	for i, url := range urls {
		wg.Go(func() {
			for range turns {
				seen, err := t.turn(ctx, url)
				if err != nil {
					errs[i] = err
					return
				}
				bytes[i] += seen.textBytes
			}
		})
	}
	wg.Wait()
	elapsed = time.Since(began)
	for i := range urls {
		textBytes += bytes[i]
		if errs[i] != nil {
			err = errs[i]
		}
	}
	return textBytes, elapsed, err
}
