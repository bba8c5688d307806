package http

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"loadline/internal/session"
)

const (
	pingEvery      = 15 * time.Second
	streamWrite    = 30 * time.Second // a reader that takes longer for one write is gone
	flushBytes     = 64 << 10         // a batch is written in pieces of about this
	maxPooledBytes = 256 << 10        // larger buffers are left to the garbage collector
)

const eventStream = "text/event-stream"

// translation is the form of one front-end protocol. Each stream has its own, which
// may remember what has been sent.
type translation interface {
	// header sets the headers of the answer that the protocol wants.
	header(h http.Header)
	// event appends an event in the protocol's form, which may be nothing.
	event(b []byte, ev *session.Event) ([]byte, error)
	// end appends what comes last, when no more events do: after the last one of a
	// turn, or because the stream broke off while the client is still there.
	end(b []byte) ([]byte, error)
}

// streamer writes event streams. It is safe for concurrent use.
type streamer struct {
	stop    context.Context // ends when the server stops
	log     zerolog.Logger
	buffers sync.Pool // of *[]byte: held only while a batch is written, so idle readers cost none

	mu     sync.Mutex      // guards the fields below
	period context.Context // ends when the streams that have come to wait since began have to be pinged
	began  time.Time
}

func newStreamer(stop context.Context, log zerolog.Logger) *streamer {
	return &streamer{stop: stop, log: log, buffers: sync.Pool{New: func() any { return new([]byte) }}}
}

// untilPing is how long a stream that begins to wait now may be silent. Streams of
// the same second share it, so that a thousand need one timer.
func (s *streamer) untilPing() context.Context {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.period == nil || now.Sub(s.began) >= time.Second {
		period, release := context.WithTimeout(s.stop, pingEvery)
		context.AfterFunc(period, release)
		s.period, s.began = period, now
	}
	return s.period
}

// follow answers with the events of sub until it ends, the client goes, a write
// fails or the server stops, and closes sub. One goroutine writes, so that a ping
// never lands inside an event. Whatever ends the stream, the client resumes by id.
func (s *streamer) follow(w http.ResponseWriter, r *http.Request, sub Subscription, form translation) {
	f := s.open(w, sub, form)
	s.run(f, r, f.write(nil)) // the headers go at once: events may be long in coming
}

// followNew is follow for a stream whose first events are there already, so that the
// headers go with them.
func (s *streamer) followNew(w http.ResponseWriter, r *http.Request, sub Subscription, form translation) {
	s.run(s.open(w, sub, form), r, nil)
}

func (s *streamer) open(w http.ResponseWriter, sub Subscription, form translation) *feed {
	h := w.Header()
	h.Set("Content-Type", eventStream)
	h.Set("X-Accel-Buffering", "no")
	form.header(h)
	w.WriteHeader(http.StatusOK)
	return &feed{w: w, conn: http.NewResponseController(w), sub: sub, form: form, buffers: &s.buffers}
}

// run writes a stream that is open, unless that has failed.
func (s *streamer) run(f *feed, r *http.Request, err error) {
	if err == nil && r.Method != http.MethodHead {
		err = s.pump(f, r)
	} else {
		f.sub.Close()
	}
	if err == nil || r.Context().Err() != nil {
		return
	}
	f.end()
	if !errors.Is(err, io.EOF) && !errors.Is(err, errStopping) {
		s.log.Info().Err(err).Str("route", routeOf(r)).Msg("stream ended early")
	}
}

// pump writes events and pings until one of both cannot go on, and says why.
func (s *streamer) pump(f *feed, r *http.Request) (err error) {
	defer f.sub.Close()
	for err == nil {
		if err = f.follow(r.Context(), s.untilPing()); err == nil {
			err = f.write([]byte(": ping\n\n"))
		}
	}
	return err
}

// feed is one open stream.
type feed struct {
	w       http.ResponseWriter
	conn    *http.ResponseController
	sub     Subscription
	form    translation
	buffers *sync.Pool
}

// follow writes events until a ping is due, and returns nil then.
func (f *feed) follow(client, untilPing context.Context) error {
	ctx, cancel := context.WithCancel(untilPing) // one for many calls of Next: they make no garbage
	defer cancel()
	defer context.AfterFunc(client, cancel)()
	for {
		events, err := f.sub.Next(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f.writeEvents(events); err != nil {
			return err
		}
	}
}

// writeEvents writes a batch, flushed once unless it is large.
func (f *feed) writeEvents(events []session.Event) error {
	buffer := f.buffers.Get().(*[]byte)
	b, err := (*buffer)[:0], error(nil)
	for i := range events {
		if b, err = f.form.event(b, &events[i]); err != nil {
			return err
		}
		if len(b) >= flushBytes {
			if err = f.write(b); err != nil {
				return err
			}
			b = b[:0]
		}
	}
	if len(b) > 0 {
		err = f.write(b)
	}
	if cap(b) <= maxPooledBytes {
		*buffer = b
		f.buffers.Put(buffer)
	}
	return err
}

// end writes what comes last, if the line still takes it.
func (f *feed) end() {
	if b, err := f.form.end(nil); err == nil && len(b) > 0 {
		_ = f.write(b) // a client that does not get it sees that the connection ends
	}
}

func (f *feed) write(b []byte) error {
	if err := f.conn.SetWriteDeadline(time.Now().Add(streamWrite)); err != nil {
		return err
	}
	if _, err := f.w.Write(b); err != nil {
		return err
	}
	return f.conn.Flush()
}

// native is our own protocol: what is stored and said, as it is.
type native struct{}

func (native) header(http.Header) {}

func (native) end(b []byte) ([]byte, error) { return b, nil }

func (native) event(b []byte, ev *session.Event) ([]byte, error) {
	if id := ev.ID(); id != "" {
		b = append(b, "id: "...)
		b = append(b, id...)
		b = append(b, '\n')
	}
	b = append(b, "event: "...)
	b = append(b, ev.Type...)
	b = append(b, "\ndata: "...)
	b, err := ev.AppendJSON(b)
	return append(b, "\n\n"...), err
}

// appendData appends a frame that has no name and no id.
func appendData(b []byte, v any) ([]byte, error) {
	text, err := session.EncodeJSON(v)
	if err != nil {
		return b, err
	}
	return append(append(append(b, "data: "...), text...), "\n\n"...), nil
}

// prefers reports whether the client would rather have the media type want than
// have; on a tie it would not.
func prefers(r *http.Request, want, have string) bool {
	return quality(r.Header, want) > quality(r.Header, have)
}

// quality is the weight that the Accept header gives to exactly this media type.
func quality(h http.Header, mediaType string) float64 {
	best := 0.0
	for _, part := range strings.Split(strings.Join(h.Values("Accept"), ","), ",") {
		named, params, err := mime.ParseMediaType(part)
		if err != nil || named != mediaType {
			continue
		}
		q, err := strconv.ParseFloat(params["q"], 64)
		if err != nil {
			q = 1
		}
		best = max(best, q)
	}
	return best
}
