package http

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"loadline/internal/session"
)

// code is the stable, machine-readable name of a problem.
type code string

// The codes of problems: a closed list, the same as in openapi.yaml.
const (
	codeInvalidJSON         code = "invalid_json"
	codeInvalidField        code = "invalid_field"
	codeInvalidParameter    code = "invalid_parameter"
	codeInvalidCursor       code = "invalid_cursor"
	codeProjectRequired     code = "project_required"
	codeUnauthorized        code = "unauthorized"
	codeCrossOrigin         code = "cross_origin"
	codeNotFound            code = "not_found"
	codeMethodNotAllowed    code = "method_not_allowed"
	codeRequestTimeout      code = "request_timeout"
	codeBusy                code = "busy"
	codeNotRunning          code = "turn_not_running"
	codeOutputGone          code = "output_gone"
	codePreconditionFailed  code = "precondition_failed"
	codeBodyTooLarge        code = "body_too_large"
	codeInputTooLarge       code = "input_too_large"
	codeUnsupportedMedia    code = "unsupported_media_type"
	codeRangeNotSatisfiable code = "range_not_satisfiable"
	codeMisdirectedHost     code = "misdirected_host"
	codeUnknownProject      code = "unknown_project"
	codeKeyReused           code = "idempotency_key_reused"
	codeNotImportable       code = "not_importable"
	codeQueueFull           code = "queue_full"
	codeInternal            code = "internal"
	codeStorage             code = "storage"
	codeStopping            code = "stopping"
	codeNotReady            code = "not_ready"
)

// kind is what all problems of a code have in common.
type kind struct {
	code   code
	status int
	title  string
	cause  error  // the error that it answers; nil when handlers name the code themselves
	detail string // what to do, where a handler knows nothing better
}

// kinds is the one status table.
func kinds() []kind {
	return []kind{
		{codeInvalidJSON, 400, "The body is not valid JSON", nil, ""},
		{codeInvalidField, 400, "The body has invalid fields", nil, "see errors"},
		{codeInvalidParameter, 400, "A parameter or header is invalid", nil, ""},
		{codeInvalidCursor, 400, "The cursor is invalid", session.ErrCursor, session.ErrCursor.Error()},
		{codeProjectRequired, 400, "A project is required", session.ErrProjectRequired, "the server has several projects and none is named default: name one in \"project\""},
		{codeUnauthorized, 401, "A key is required", nil, "send a valid key: Authorization: Bearer KEY"},
		{codeCrossOrigin, 403, "The origin is not allowed", nil, "pages of another site may use this API only when server.allowed_origins names their origin"},
		{codeNotFound, 404, "Nothing is here", session.ErrNotFound, "nothing has this id: it is malformed or unknown, or its session was deleted"},
		{codeMethodNotAllowed, 405, "The method is not allowed here", nil, "the Allow header lists the methods of this path"},
		{codeRequestTimeout, 408, "The request took too long", nil, "the body did not arrive in time: send it again"},
		{codeBusy, 409, "The session is running a turn", session.ErrBusy, "wait for its terminal event, cancel it, or use mode enqueue"},
		{codeNotRunning, 409, "The expected turn is not running", session.ErrNotRunning, "the turn has ended, or waits: send the input without expected_turn, for example with mode enqueue"},
		{codeOutputGone, 410, "The output is not kept any more", session.ErrOutputGone, "it was kept, and has been removed since: outputs go by age and when their quota is full ([artifacts])"},
		{codePreconditionFailed, 412, "The output is another one", nil, "If-Match names another ETag than that of this output"},
		{codeBodyTooLarge, 413, "The body is too large", nil, ""},
		{codeInputTooLarge, 413, "The input is too large for the model", nil, ""},
		{codeUnsupportedMedia, 415, "The body is not JSON", nil, ""},
		{codeRangeNotSatisfiable, 416, "The range is beyond the output", nil, "the Content-Range header says how many bytes the output has"},
		{codeMisdirectedHost, 421, "The host is not served here", nil, ""},
		{codeUnknownProject, 422, "The project is unknown", session.ErrUnknownProject, "the manifest names no such project"},
		{codeKeyReused, 422, "The idempotency key was used before", session.ErrKeyReused, "this key came with another body: use a fresh key for each new turn"},
		{codeNotImportable, 422, "The document cannot be imported", nil, ""},
		{codeQueueFull, 429, "Too many turns are queued", session.ErrQueueFull, "wait until turns of this session have ended, then send it again"},
		{codeInternal, 500, "The server made a mistake", nil, "the server's log holds the cause"},
		{codeStorage, 503, "The storage failed", session.ErrStorage, "nothing was stored: send it again later; the server's log holds the cause"},
		{codeStopping, 503, "The server is stopping", session.ErrStopping, "send it again when the server is back"},
		{codeNotReady, 503, "The server is not ready", nil, ""},
	}
}

// fieldError says what is wrong with one field of a body.
type fieldError struct {
	Pointer string `json:"pointer"` // JSON Pointer, RFC 6901
	Detail  string `json:"detail"`
}

// problem is the body of every answer that refuses, RFC 9457.
type problem struct {
	Type   string       `json:"type"`
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail"`
	Code   code         `json:"code"`
	Errors []fieldError `json:"errors,omitempty"`
}

func (p *problem) Error() string { return string(p.Code) + ": " + p.Detail }

// newProblem makes a problem; an empty detail means that of its kind.
func newProblem(c code, detail string) *problem {
	all := kinds()
	k := all[slices.IndexFunc(all, func(k kind) bool { return k.code == c })]
	if detail == "" {
		detail = k.detail
	}
	return &problem{Type: "urn:loadline:problem:" + string(c), Title: k.title, Status: k.status, Detail: session.Clean(detail), Code: c}
}

// asProblem finds the answer to an error. One that nobody has foreseen is internal.
func asProblem(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if large, ok := errors.AsType[*session.InputTooLarge](err); ok {
		return newProblem(codeInputTooLarge, large.Error())
	}
	if unreadable, ok := errors.AsType[*session.NotImportable](err); ok {
		return newProblem(codeNotImportable, unreadable.Error())
	}
	for _, k := range kinds() {
		if k.cause != nil && errors.Is(err, k.cause) {
			return newProblem(k.code, "")
		}
	}
	return newProblem(codeInternal, "")
}

// handler answers a request, or returns an error before it has written anything.
type handler func(w http.ResponseWriter, r *http.Request) error

// answer is the one place where errors become answers.
func (s *Server) answer(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
			return // the client is gone, and with it whoever would read the answer
		}
		p := asProblem(err)
		if p.Status >= http.StatusInternalServerError && p.Code != codeNotReady && p.Code != codeStopping {
			s.config.Log.Error().Err(err).Str("method", r.Method).Str("route", routeOf(r)).Str("code", string(p.Code)).Msg("request failed")
		}
		refuse(w, r, p)
	}
}

// refuse answers with a problem, in the form that clients of the route can read.
func refuse(w http.ResponseWriter, r *http.Request, p *problem) {
	switch {
	case speaksOpenAI(r):
		body, status := openAIProblem(p)
		setRetryAfter(w.Header(), status)
		writeBody(w, status, "application/json", body)
	case speaksAISDK(r), speaksAGUI(r):
		setRetryAfter(w.Header(), p.Status)
		writeText(w, p.Status, p.Title+": "+p.Detail)
	default:
		writeProblem(w, p)
	}
}

func setRetryAfter(h http.Header, status int) {
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		h.Set("Retry-After", "1")
	}
}

func writeProblem(w http.ResponseWriter, p *problem) {
	setRetryAfter(w.Header(), p.Status)
	writeBody(w, p.Status, "application/problem+json", p)
}

// writeJSON answers with the wire form of v.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	writeBody(w, status, "application/json", v)
	return nil
}

func writeBody(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := session.EncodeJSON(v)
	if err != nil {
		panic("encode an answer: " + err.Error()) // our own types always encode
	}
	writeBytes(w, status, contentType, body)
}

func writeText(w http.ResponseWriter, status int, text string) {
	writeBytes(w, status, "text/plain; charset=utf-8", []byte(text))
}

func writeBytes(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}
