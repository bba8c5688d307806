package http

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// route is one line of the API. An open one needs no key, and holds no data.
type route struct {
	method, pattern string
	handle          handler
	open            bool
}

// routes are those of openapi.yaml.
func (s *Server) routes() []route {
	const (
		one   = "/v1/sessions/{session_id}"
		turns = one + "/turns"
		turn  = turns + "/{turn_id}"
	)
	return append(s.memoryRoutes(), []route{
		{"POST", "/v1/sessions", s.createSession, false},
		{"GET", "/v1/sessions", s.listSessions, false},
		{"POST", "/v1/sessions/import", s.importSession, false},
		{"GET", one + "/export", s.exportSession, false},
		{"GET", one, s.getSession, false},
		{"PATCH", one, s.updateSession, false},
		{"DELETE", one, s.deleteSession, false},
		{"POST", turns, s.submitTurn, false},
		{"GET", turns, s.listTurns, false},
		{"GET", turn, s.getTurn, false},
		{"POST", turn + "/cancel", s.cancelTurn, false},
		{"POST", one + "/ag-ui", s.runAGUI, false},
		{"POST", one + "/ai-sdk", s.submitUIMessage, false},
		{"GET", one + "/ai-sdk/{chat_id}/stream", s.resumeUIMessage, false},
		{"GET", one + "/queue", s.listQueue, false},
		{"GET", one + "/diagnosis", s.getDiagnosis, false},
		{"GET", one + "/items", s.listItems, false},
		{"GET", one + "/items/{n}", s.getItem, false},
		{"GET", one + "/items/{n}/output", s.getOutput, false},
		{"GET", one + "/events", s.getEvents, false},
		{"POST", chatPath, s.completeChat, false},
		{"GET", modelsPath, s.listModels, false},
		{"GET", "/v1/projects", s.listProjects, false},
		{"GET", "/v1/tools", s.listTools, false},
		{"GET", "/v1/manifest", s.getManifest, false},
		{"GET", "/metrics", s.getMetrics, false},
		{"GET", "/healthz", s.getHealth, true},
		{"GET", "/readyz", s.getReady, true},
		{"GET", "/openapi.yaml", s.getContract, true},
		{"GET", "/docs", s.getPage, true},
		{"GET", "/", s.getPage, true},
		{"GET", "/assets/{file}", s.getPage, true},
	}...)
}

// newHandler puts the routes behind the middleware: from the log, which sees every
// answer, to the keys, which let only known clients reach a handler.
func (s *Server) newHandler() (http.Handler, error) {
	origins, err := s.newOrigins()
	if err != nil {
		return nil, err
	}
	routes := s.routes()
	keys, err := s.newKeys(routes)
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	r.Use(s.logAccess, s.recoverPanic, s.admit(setHeaders, s.newHosts().check, origins.check, keys.check))
	r.NotFound(s.answer(noRoute))
	r.MethodNotAllowed(s.answer(wrongMethod(r)))
	for _, route := range routes {
		r.Method(route.method, route.pattern, s.answer(route.handle))
		if route.method == http.MethodGet {
			r.Method(http.MethodHead, route.pattern, s.answer(route.handle))
		}
	}
	return r, nil
}

func noRoute(_ http.ResponseWriter, r *http.Request) error {
	return newProblem(codeNotFound, fmt.Sprintf("the API has no path %q: /docs lists them", r.URL.Path))
}

// wrongMethod answers OPTIONS, and refuses the methods that a path does not have.
func wrongMethod(router *chi.Mux) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		var allowed []string
		for _, method := range []string{"GET", "HEAD", "POST", "PATCH", "DELETE"} {
			if router.Match(chi.NewRouteContext(), method, r.URL.Path) {
				allowed = append(allowed, method)
			}
		}
		w.Header().Set("Allow", strings.Join(append(allowed, "OPTIONS"), ", "))
		if r.Method != http.MethodOptions {
			return newProblem(codeMethodNotAllowed, "")
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// routeOf is the pattern that the request matched; "" when none did.
func routeOf(r *http.Request) string { return chi.RouteContext(r.Context()).RoutePattern() }

func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request) error {
	s.config.Metrics.ServeHTTP(w, r)
	return nil
}

func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, status{"alive"})
}

func (s *Server) getReady(w http.ResponseWriter, _ *http.Request) error {
	if err := s.config.Ready(); err != nil {
		return newProblem(codeNotReady, err.Error())
	}
	return writeJSON(w, http.StatusOK, readiness{"ready", s.config.Remarks()})
}

type status struct {
	Status string `json:"status"`
}

type readiness struct {
	Status  string   `json:"status"`
	Remarks []string `json:"remarks,omitempty"`
}

func (s *Server) getContract(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = bytes.NewReader(s.config.Contract).WriteTo(w)
	return nil
}

// getPage sends a file of the page.
func (s *Server) getPage(w http.ResponseWriter, r *http.Request) error {
	if !s.config.Page.Has(r.URL.Path) {
		return newProblem(codeNotFound, "the page has no such file: load it again, it may be of an older server")
	}
	s.config.Page.ServeHTTP(w, r)
	return nil
}

func (s *Server) listProjects(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, http.StatusOK, page[Project]{Data: append([]Project{}, s.config.Projects.List()...)})
}

func (s *Server) listTools(w http.ResponseWriter, r *http.Request) error {
	values, err := query(r)
	if err != nil {
		return err
	}
	tools, err := s.config.Projects.Tools(values.Get("project"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, page[Tool]{Data: append([]Tool{}, tools...)})
}

func (s *Server) getManifest(w http.ResponseWriter, r *http.Request) error {
	values, err := query(r)
	if err != nil {
		return err
	}
	manifest, err := s.config.Projects.Manifest(values.Get("project"))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, manifest)
}
