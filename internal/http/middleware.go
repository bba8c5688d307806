package http

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"
)

// statusClientGone is logged for requests that nobody waited for. It is never sent.
const statusClientGone = 499

// recorder remembers what was answered. http.ResponseController sees through it.
type recorder struct {
	http.ResponseWriter
	status int // 0 until the header is written
	bytes  int64
}

func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// logAccess logs each request when it has been answered: its route, never its query,
// headers or body. Open routes, which probes ask all the time, are for debugging.
func (s *Server) logAccess(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		started := time.Now()
		rec := &recorder{ResponseWriter: w}
		next.ServeHTTP(rec, r)
		level := zerolog.InfoLevel
		if route := routeOf(r); route == "/healthz" || route == "/readyz" || route == "/metrics" {
			level = zerolog.DebugLevel
		}
		s.config.Log.WithLevel(level).Str("method", knownMethod(r.Method)).Str("route", routeOf(r)).
			Int("status", cmp.Or(rec.status, statusClientGone)).Int64("bytes", rec.bytes).
			Dur("duration", time.Since(started)).Msg("request")
	})
}

// knownMethod keeps what a client made up out of the log.
func knownMethod(method string) string {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return method
	}
	return "other"
}

// recoverPanic answers a panic with a problem, or cuts the answer off when it has begun.
func (s *Server) recoverPanic(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			reason := recover()
			if reason == nil {
				return
			}
			err, _ := reason.(error)
			aborted := errors.Is(err, http.ErrAbortHandler)
			if !aborted {
				s.config.Log.Error().Str("panic", fmt.Sprint(reason)).Bytes("stack", debug.Stack()).Str("route", routeOf(r)).Msg("handler panicked")
			}
			if rec, ok := w.(*recorder); !ok || rec.status != 0 || aborted {
				panic(http.ErrAbortHandler)
			}
			refuse(w, r, newProblem(codeInternal, ""))
		}()
		next.ServeHTTP(w, r)
	})
}

// admit lets a request through that passes all checks. They are a list rather than a
// chain of middleware: a stream keeps every frame of a chain for hours.
func (s *Server) admit(checks ...handler) func(http.Handler) http.Handler {
	check := func(w http.ResponseWriter, r *http.Request) error {
		for _, check := range checks {
			if err := check(w, r); err != nil {
				return err
			}
		}
		return nil
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := check(w, r); err != nil {
				refuse(w, r, asProblem(err))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// setHeaders makes no answer cached, sniffed, framed or run as a page.
func setHeaders(w http.ResponseWriter, _ *http.Request) error {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	return nil
}
