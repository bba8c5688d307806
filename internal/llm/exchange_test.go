package llm

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// body is an answer that comes in time: each piece after its wait, then silence
// until the request's context ends.
type body struct {
	ctx    context.Context
	pieces []string
	wait   time.Duration
	after  error // at the end, instead of silence
}

func (b *body) Read(p []byte) (int, error) {
	if len(b.pieces) == 0 && b.after != nil {
		return 0, b.after
	}
	timer := time.NewTimer(b.wait)
	defer timer.Stop()
	tick := timer.C
	if len(b.pieces) == 0 {
		tick = nil
	}
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-tick:
	}
	n := copy(p, b.pieces[0])
	b.pieces = b.pieces[1:]
	return n, nil
}

func TestExchangeGivesUpWhenNothingComes(t *testing.T) {
	const idle = time.Minute
	piece, comment := "data: x\n\n", ": still here\n\n"
	tests := []struct {
		name   string
		pieces []string
		wait   time.Duration
		want   time.Duration // until it gives up
	}{
		{"nothing at all", nil, 0, idle},
		{"pieces put it off", []string{piece, piece, piece}, 59 * time.Second, 3*59*time.Second + idle},
		{"too late", []string{piece}, 61 * time.Second, idle},
		{"half a line does not", []string{"data: ", "x", "x"}, 25 * time.Second, idle},
		{"comments put it off", []string{comment, comment}, 59 * time.Second, 2*59*time.Second + idle},
		{"but not for ever", repeat(comment, 1000), 50 * time.Second, 11 * time.Minute},
		{"pieces begin anew", append(repeat(comment, 10), append([]string{piece}, repeat(comment, 10)...)...), 50 * time.Second, 21*50*time.Second + idle},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				x := NewExchange(t.Context(), idle)
				defer x.Close()
				x.Receive(&body{ctx: x.Context(), pieces: test.pieces, wait: test.wait})
				var err error
				for err == nil {
					_, err = x.Next()
				}
				got, ok := errors.AsType[*Error](x.Error(err))
				if !ok || got.Class != ClassRetry || !errors.Is(got, errIdle) {
					t.Errorf("error = %v, want an idle one of class retry", err)
				}
				if took := time.Since(begun); took != test.want {
					t.Errorf("gave up after %v, want %v", took, test.want)
				}
			})
		})
	}
}

func repeat(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

func TestExchangeEndsWhenNoAnswerBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		x := NewExchange(t.Context(), time.Minute)
		defer x.Close()
		<-x.Context().Done()
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("ended after %v, want 1m", took)
		}
	})
}

func TestExchangeLimitIsNotPutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		x := NewExchange(t.Context(), time.Minute)
		defer x.Close()
		x.Receive(&body{ctx: x.Context(), pieces: repeat("data: x\n", 1000), wait: 10 * time.Millisecond})
		x.Limit(time.Second)
		var err error
		for err == nil {
			_, err = x.Next()
		}
		if took := time.Since(begun); took != time.Second {
			t.Errorf("ended after %v, want 1s", took)
		}
	})
}

func TestExchangeError(t *testing.T) {
	errEnough := errors.New("enough")
	refused := &Error{Class: ClassFail, Err: errors.New("no")}
	tests := []struct {
		name      string
		cancelled bool
		err       error
		want      error
		class     Class
	}{
		{"the caller's cause", true, refused, errEnough, ""},
		{"a refusal", false, &wrapped{refused}, refused, ClassFail},
		{"the end", false, io.EOF, io.ErrUnexpectedEOF, ClassRetry},
		{"anything", false, io.ErrClosedPipe, io.ErrClosedPipe, ClassRetry},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			x := NewExchange(ctx, time.Minute)
			defer x.Close()
			if test.cancelled {
				cancel(errEnough)
			}
			got := x.Error(test.err)
			if !errors.Is(got, test.want) {
				t.Errorf("Error(%v) = %v, want %v", test.err, got, test.want)
			}
			if e, ok := errors.AsType[*Error](got); ok != (test.class != "") || ok && e.Class != test.class {
				t.Errorf("Error(%v) = %#v, want class %q", test.err, got, test.class)
			}
		})
	}
}

type wrapped struct{ error }

func (w *wrapped) Unwrap() error { return w.error }

func TestNextReadsDataLines(t *testing.T) {
	long := strings.Repeat("x", 3*lineBufferBytes)
	tests := []struct {
		name, stream string
		want         []string
	}{
		{"events", "event: a\ndata: 1\n\ndata:2\n\nid: 7\n\n", []string{"1", "2"}},
		{"carriage returns", "data: 1\r\n\r\ndata: 2\r\n", []string{"1", "2"}},
		{"comments", ": hi\n:\ndata: 1\n\n", []string{"1"}},
		{"empty data", "data:\ndata: \n\ndata: 1\n", []string{"1"}},
		{"no break at the end", "data: 1", []string{"1"}},
		{"an error in place of a stream", `{"error":"x"}`, []string{`{"error":"x"}`}},
		{"a line longer than the buffer", "data: " + long + "\ndata: 2\n", []string{long, "2"}},
		{"the longest line", "data: " + strings.Repeat("y", MaxLineBytes-7) + "\n", []string{strings.Repeat("y", MaxLineBytes-7)}},
		{"nothing", "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := NewExchange(t.Context(), time.Minute)
			defer x.Close()
			x.Receive(strings.NewReader(test.stream))
			for _, want := range test.want {
				if got, err := x.Next(); err != nil || string(got) != want {
					t.Fatalf("Next() = %.40q, %v, want %.40q", got, err, want)
				}
			}
			if got, err := x.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("Next() = %.40q, %v, want the end", got, err)
			}
		})
	}
}

func TestNextIsBounded(t *testing.T) {
	for name, stream := range map[string]io.Reader{
		"line":   strings.NewReader("data: " + strings.Repeat("x", MaxLineBytes)),
		"stream": endless("data: " + strings.Repeat("x", 1<<20) + "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			x := NewExchange(t.Context(), time.Minute)
			defer x.Close()
			x.Receive(stream)
			var err error
			for err == nil {
				_, err = x.Next()
			}
			if errors.Is(err, io.EOF) || x.readBytes > maxStreamBytes+MaxLineBytes {
				t.Errorf("error after %d bytes = %v", x.readBytes, err)
			}
		})
	}
}

type endless string

func (s endless) Read(p []byte) (int, error) { return copy(p, s), nil }

// The pieces in which a stream arrives change nothing.
func TestNextDoesNotSeeThePiecesOfTheNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stream := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{
			"data: a", "data:", "\n", "\r\n", ":c", "{", "日本", "event: x", strings.Repeat("z", lineBufferBytes),
		})).Draw(t, "stream"), "")
		whole := readAll(strings.NewReader(stream))
		if got := readAll(iotest.OneByteReader(strings.NewReader(stream))); got != whole {
			t.Fatalf("one byte at a time %q, whole %q", got, whole)
		}
	})
}

func readAll(r io.Reader) string {
	x := NewExchange(context.Background(), time.Minute)
	defer x.Close()
	x.Receive(r)
	var all strings.Builder
	for {
		data, err := x.Next()
		if err != nil {
			return all.String() + "|" + err.Error()
		}
		all.WriteString("|" + string(data))
	}
}
