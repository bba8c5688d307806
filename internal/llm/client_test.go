package llm

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestClientReadsLittleOfAnError(t *testing.T) {
	var written atomic.Int64
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer close(done)
		w.WriteHeader(http.StatusBadGateway)
		part := []byte(strings.Repeat("sorry ", 10_000))
		for written.Load() < 1<<30 {
			n, err := w.Write(part)
			written.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	defer server.Close()
	client := NewClient(time.Minute)
	defer client.CloseIdleConnections()
	_, err := client.Get(server.URL)
	if e, ok := errors.AsType[*Error](err); !ok || e.Status != http.StatusBadGateway || len(err.Error()) > 4096 {
		t.Errorf("error = %.200v", err)
	}
	<-done
	if n := written.Load(); n > 32<<20 {
		t.Errorf("the server could send %d bytes", n)
	}
}

func TestClientFollowsNoRedirect(t *testing.T) {
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++ // one at a time
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	client := NewClient(time.Minute)
	defer client.CloseIdleConnections()
	_, err := client.Get(server.URL)
	if e, ok := errors.AsType[*Error](err); !ok || e.Class != ClassFail || !strings.Contains(err.Error(), "/elsewhere") {
		t.Errorf("error = %v, want one that names the place", err)
	}
	if requests != 1 {
		t.Errorf("%d requests came, want 1", requests)
	}
}
