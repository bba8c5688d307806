package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	firstChunk  = `data: {"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	textChunks  = `data: {"choices":[{"delta":{"content":"Hel"}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"lo"}}]}` + "\n\n"
	finishChunk = `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n" + `data: {"choices":[],"usage":{}}` + "\n\n"
	doneLine    = "data: [DONE]\n\n"
)

func TestTurn(t *testing.T) {
	kept := func(context.Context, string, string) error { return nil }
	tests := []struct {
		name   string
		status int
		model  string
		keep   func(context.Context, string, string) error
		want   string
	}{
		{"whole", 200, firstChunk + textChunks + finishChunk + doneLine, kept,
			"data: {\"text\":\"Hel\"}\n\ndata: {\"text\":\"lo\"}\n\nevent: done\ndata: {}\n\n"},
		{"cut off", 200, firstChunk + textChunks, kept,
			"data: {\"text\":\"Hel\"}\n\ndata: {\"text\":\"lo\"}\n\nevent: error\ndata: {\"detail\":\"the model's stream is cut off\"}\n\n"},
		{"refused", 500, "", kept,
			"event: error\ndata: {\"detail\":\"the model answers 500 Internal Server Error\"}\n\n"},
		{"not stored", 200, firstChunk + finishChunk + doneLine, func(context.Context, string, string) error { return errors.New("disk is full") },
			"event: error\ndata: {\"detail\":\"disk is full\"}\n\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.model)
			}))
			defer model.Close()
			f := &floor{client: model.Client(), url: model.URL, model: "fake-2", keep: test.keep}
			w := httptest.NewRecorder()
			f.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/turns", strings.NewReader(`{"input":"hi"}`)))
			if got := w.Body.String(); got != test.want {
				t.Errorf("answer %q, want %q", got, test.want)
			}
		})
	}
}

func TestStoreKeepsTurnsDurably(t *testing.T) {
	path := filepath.Join(t.TempDir(), "floor.db")
	for turns := 1; turns <= 2; turns++ { // the second time the file is there
		s, err := openStore(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.add(t.Context(), "hi", "Hello"); err != nil {
			t.Fatal(err)
		}
		for query, want := range map[string]string{
			"SELECT count(*) FROM turn": strconv.Itoa(turns),
			"PRAGMA journal_mode":       "wal",
			"PRAGMA synchronous":        "2", // FULL
		} {
			var got string
			if err := s.db.QueryRow(query).Scan(&got); err != nil || got != want {
				t.Errorf("%s: %q, %v, want %q", query, got, err, want)
			}
		}
		if err := s.db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
