package llm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// maxSilence bounds, in idle timeouts, how long keep-alive lines can stand in
	// for pieces of the answer.
	maxSilence = 10
	// maxStreamBytes bounds all of a stream, frames included.
	maxStreamBytes  = 256 << 20
	lineBufferBytes = 16 << 10
)

var (
	errIdle   = errors.New("nothing came within the idle timeout")
	errClosed = errors.New("exchange is over")
)

// Exchange is one request and its streamed answer, bounded in the length of a
// line, the size of the whole and the time between two pieces. It is for one
// goroutine.
type Exchange struct {
	parent, ctx context.Context
	cancel      context.CancelCauseFunc
	idle        time.Duration
	timer       *time.Timer // cancels ctx when it fires
	final       bool        // nothing puts the timer off any more
	silentSince time.Time   // the first keep-alive line after the last piece
	lines       *bufio.Reader
	long        []byte // a line that does not fit the buffer of lines
	readBytes   int64
}

// NewExchange starts one. When nothing comes within idle, the context of the
// exchange ends; so it does when ctx ends. Close must be called.
func NewExchange(ctx context.Context, idle time.Duration) *Exchange {
	x := &Exchange{parent: ctx, idle: idle}
	x.ctx, x.cancel = context.WithCancelCause(ctx)
	x.timer = time.AfterFunc(idle, func() { x.cancel(errIdle) })
	return x
}

// Context is the one to send the request with.
func (x *Exchange) Context() context.Context { return x.ctx }

// Close ends the exchange. It may be called twice.
func (x *Exchange) Close() {
	x.timer.Stop()
	x.cancel(errClosed)
}

// Limit ends the exchange after wait, whatever comes: the end of a stream is
// waited for shortly.
func (x *Exchange) Limit(wait time.Duration) {
	x.final = true
	x.timer.Reset(wait)
}

// Receive says where the answer comes from.
func (x *Exchange) Receive(body io.Reader) {
	x.lines = bufio.NewReaderSize(body, lineBufferBytes)
	x.timer.Reset(x.idle)
}

// Next returns the data of the next data line of the stream, until the next call.
// A line that begins with a brace counts as data too: so servers send an error in
// place of a stream. Other lines are skipped. At the end it is io.EOF; other
// errors are for Error.
func (x *Exchange) Next() ([]byte, error) {
	for {
		line, err := x.line()
		if err != nil {
			return nil, err
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			line = bytes.TrimSpace(data)
		} else if len(line) == 0 || line[0] != '{' {
			if len(line) > 0 {
				x.keepAlive()
			}
			continue
		}
		if len(line) > 0 {
			x.silentSince = time.Time{}
			x.putOff()
			return line, nil
		}
	}
}

func (x *Exchange) keepAlive() {
	if x.silentSince.IsZero() {
		x.silentSince = time.Now()
	}
	if time.Since(x.silentSince) < maxSilence*x.idle {
		x.putOff()
	}
}

func (x *Exchange) putOff() {
	if !x.final {
		x.timer.Reset(x.idle)
	}
}

// line reads up to a line break, or to the end of the stream, and drops it.
func (x *Exchange) line() ([]byte, error) {
	x.long = x.long[:0]
	for {
		part, err := x.lines.ReadSlice('\n')
		x.readBytes += int64(len(part))
		switch {
		case x.readBytes > maxStreamBytes:
			return nil, fmt.Errorf("the stream is longer than %d bytes", maxStreamBytes)
		case len(x.long)+len(part) > MaxLineBytes:
			return nil, fmt.Errorf("a line of the stream is longer than %d bytes", MaxLineBytes)
		case errors.Is(err, bufio.ErrBufferFull):
			x.long = append(x.long, part...)
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(x.long)+len(part) == 0):
			return nil, err
		}
		if len(x.long) > 0 {
			part = append(x.long, part...)
			x.long = part
		}
		return bytes.TrimRight(part, "\r\n"), nil
	}
}

// Error makes the error with which Ask fails out of one that ended the exchange:
// the cause of the caller's context when that has ended, an *Error that err holds,
// else an *Error of ClassRetry, as for a broken stream.
func (x *Exchange) Error(err error) error {
	if x.parent.Err() != nil {
		return context.Cause(x.parent)
	}
	if refused, ok := errors.AsType[*Error](err); ok {
		return refused
	}
	if errors.Is(context.Cause(x.ctx), errIdle) {
		err = fmt.Errorf("%w of %v", errIdle, x.idle)
	} else if errors.Is(err, io.EOF) {
		err = fmt.Errorf("the stream ended before the answer did: %w", io.ErrUnexpectedEOF)
	}
	return &Error{Class: ClassRetry, Err: err}
}
