package http

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
)

const turnsPath = "/v1/sessions/" + string(testSession) + "/turns"

func TestForeignHostsAreMisdirected(t *testing.T) {
	f := &fake{}
	s := newTestServer(t, f, func(c *Config) {
		c.Settings.Listen = "192.0.2.7:8080"
		c.Settings.AllowedHosts = []string{"Chat.example", "2001:db8::1"}
	})
	tests := []struct {
		host string
		ok   bool
	}{
		{"localhost", true}, {"LOCALHOST:1", true}, {"127.0.0.1:8080", true}, {"[::1]:8080", true}, {"[::1]", true},
		{"192.0.2.7", true}, {"chat.example:443", true}, {"[2001:db8::1]:80", true},
		{"evil.test:8080", false}, {"127.0.0.1.evil.test", false}, {"", false}, {"localhost.", false}, {"0.0.0.0", false},
		{"[::2]:8080", false}, {"localhost:80:80", false}, {"192.0.2.8", false}, {"example", false},
	}
	for _, test := range tests {
		w := ask(t, s, "GET", "/v1/sessions", "", "Host: "+test.host)
		if test.ok != (w.Code == 200) {
			t.Errorf("Host %q: status %d, allowed should be %v", test.host, w.Code, test.ok)
		}
		if !test.ok {
			wantProblem(t, w, codeMisdirectedHost)
		}
	}
	for _, r := range s.routes() {
		w := ask(t, s, r.method, fill(r.pattern), "", "Host: evil.test:8080")
		if wantRefusal(t, r, w, codeMisdirectedHost); w.Code != 421 {
			t.Errorf("%s %s: status %d for a foreign host, want 421", r.method, r.pattern, w.Code)
		}
	}
	if len(f.created)+len(f.submitted)+len(f.from) > 0 {
		t.Error("a misdirected request was carried out")
	}
}

func TestCrossSiteChangesAreRefused(t *testing.T) {
	tests := []struct {
		name    string
		headers []string
		ok      bool
	}{
		{"no browser", nil, true},
		{"same origin", []string{"Sec-Fetch-Site: same-origin", "Origin: http://127.0.0.1:8080"}, true},
		{"same origin of old browsers", []string{"Origin: http://127.0.0.1:8080"}, true},
		{"allowed origin", []string{"Sec-Fetch-Site: cross-site", "Origin: https://app.test"}, true},
		{"foreign site", []string{"Sec-Fetch-Site: cross-site", "Origin: http://evil.test"}, false},
		{"foreign site of old browsers", []string{"Origin: http://evil.test"}, false},
		{"other port", []string{"Sec-Fetch-Site: same-site", "Origin: http://127.0.0.1:9999"}, false},
		{"no origin", []string{"Sec-Fetch-Site: cross-site"}, false},
		{"null origin", []string{"Origin: null"}, false},
		{"text, as a form can send it", []string{"Content-Type: text/plain", "Origin: http://evil.test"}, false},
		{"beginning of an allowed origin", []string{"Origin: https://app.test.evil.test"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := &fake{}
			s := newTestServer(t, f, func(c *Config) { c.Settings.AllowedOrigins = []string{"https://app.test"} })
			w := ask(t, s, "POST", turnsPath, `{"input":"a"}`, test.headers...)
			if test.ok {
				if w.Code != 202 {
					t.Errorf("answer %d %s, want 202", w.Code, w.Body)
				}
				return
			}
			wantProblem(t, w, codeCrossOrigin)
			if w.Code != 403 || len(f.submitted) > 0 {
				t.Errorf("status %d and %d turns, want 403 and none", w.Code, len(f.submitted))
			}
		})
	}
}

func TestOnlyAllowedOriginsMayRead(t *testing.T) {
	s := newTestServer(t, &fake{}, func(c *Config) {
		c.Settings.AllowedOrigins = []string{"https://app.test"}
		c.Settings.Keys = map[string]string{"anna": digest("secret")}
	})
	preflight := []string{"Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,content-type"}
	cors := func(h http.Header) map[string]string {
		found := map[string]string{}
		for name := range h {
			if short, ok := strings.CutPrefix(name, "Access-Control-"); ok {
				found[short] = h.Get(name)
			}
		}
		return found
	}

	w := ask(t, s, "OPTIONS", turnsPath, "", append(preflight, "Origin: https://app.test")...)
	want := map[string]string{
		"Allow-Origin": "https://app.test", "Allow-Credentials": "true", "Max-Age": "600",
		"Allow-Methods":  "GET, HEAD, POST, PATCH, DELETE",
		"Allow-Headers":  "Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Loadline-Session",
		"Expose-Headers": "Location, Idempotency-Replayed, Loadline-Session, Retry-After",
	}
	if diff := cmp.Diff(want, cors(w.Header())); w.Code != 204 || diff != "" {
		t.Errorf("preflight of an allowed origin: status %d (-want +got):\n%s", w.Code, diff)
	}
	for _, origin := range []string{"http://evil.test", "null", "https://app.test:444", "http://app.test"} {
		w := ask(t, s, "OPTIONS", turnsPath, "", append(preflight, "Origin: "+origin)...)
		wantProblem(t, w, codeCrossOrigin)
		if got := cors(w.Header()); len(got) > 0 || w.Header().Get("Vary") != "Origin" {
			t.Errorf("preflight of %s is answered with %v, Vary %q", origin, got, w.Header().Get("Vary"))
		}
		if got := cors(ask(t, s, "GET", "/healthz", "", "Origin: "+origin).Header()); len(got) > 0 {
			t.Errorf("a read by %s is answered with %v", origin, got)
		}
	}
	w = ask(t, s, "GET", "/v1/sessions", "", "Origin: https://app.test")
	wantProblem(t, w, codeUnauthorized)
	if w.Header().Get("Access-Control-Allow-Origin") != "https://app.test" {
		t.Error("an allowed origin may not read why it was refused")
	}
}

func digest(key string) string {
	hash := sha256.Sum256([]byte(key))
	return "sha256:" + hex.EncodeToString(hash[:])
}

func TestKeys(t *testing.T) {
	s := newTestServer(t, &fake{sub: ended()}, func(c *Config) {
		c.Settings.Keys = map[string]string{"anna": digest("key-a"), "bert": digest("key-b")}
	})
	for _, header := range []string{"", "Bearer", "Bearer ", "Bearer key-c", "Basic key-a", "key-a", "Bearer key-a key-b", "Bearer " + digest("key-a"), "Bearerkey-a"} {
		w := ask(t, s, "GET", "/v1/sessions", "", "Authorization: "+header)
		wantProblem(t, w, codeUnauthorized)
		if w.Code != 401 || !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("Authorization %q: status %d, WWW-Authenticate %q", header, w.Code, w.Header().Get("WWW-Authenticate"))
		}
	}
	for _, header := range []string{"Bearer key-a", "bearer key-b", "Bearer  key-a"} {
		if w := ask(t, s, "GET", "/v1/sessions", "", "Authorization: "+header); w.Code != 200 {
			t.Errorf("Authorization %q: status %d, want 200", header, w.Code)
		}
	}
	open := map[string]bool{"/healthz": true, "/readyz": true, "/openapi.yaml": true, "/docs": true, "/": true, "/assets/{file}": true}
	for _, r := range s.routes() {
		if w := ask(t, s, r.method, fill(r.pattern), ""); (w.Code != 401) != open[r.pattern] {
			t.Errorf("%s %s without a key: status %d, open should be %v", r.method, r.pattern, w.Code, open[r.pattern])
		}
	}
	wantProblem(t, ask(t, s, "GET", "/nothing", ""), codeUnauthorized)
	wantProblem(t, ask(t, s, "GET", "//healthz", ""), codeUnauthorized)
	wantProblem(t, ask(t, s, "GET", "/assets", ""), codeUnauthorized)
	wantProblem(t, ask(t, s, "GET", "/assets/none.js", ""), codeNotFound)
}

func TestNewRefusesMalformedSettings(t *testing.T) {
	tests := []struct {
		name, names string
		change      func(*Config)
	}{
		{"short key", "server.keys.anna", func(c *Config) { c.Settings.Keys = map[string]string{"anna": "sha256:abc"} }},
		{"bare key", "server.keys.anna", func(c *Config) { c.Settings.Keys = map[string]string{"anna": strings.Repeat("ab", 32)} }},
		{"origin with a path", "server.allowed_origins", func(c *Config) { c.Settings.AllowedOrigins = []string{"https://app.test/x"} }},
		{"origin without scheme", "server.allowed_origins", func(c *Config) { c.Settings.AllowedOrigins = []string{"app.test"} }},
	}
	for _, test := range tests {
		var c Config
		test.change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), test.names) {
			t.Errorf("%s: New returns %v, want an error that names %s", test.name, err, test.names)
		}
	}
}

func TestAccessLogHoldsNoSecrets(t *testing.T) {
	var log bytes.Buffer
	s := newTestServer(t, &fake{}, func(c *Config) {
		c.Log = zerolog.New(&log)
		c.Settings.Keys = map[string]string{"anna": digest("SECRET-KEY")}
	})
	ask(t, s, "POST", turnsPath+"?x=SECRET-QUERY", `{"input":"SECRET-BODY"}`, "Authorization: Bearer SECRET-KEY", "Idempotency-Key: SECRET-IDEM", "Host: localhost")
	ask(t, s, "SECRET-METHOD", "/SECRET-PATH", "", "Authorization: Bearer SECRET-KEY")
	if strings.Contains(log.String(), "SECRET") {
		t.Errorf("log holds a secret: %s", log.String())
	}
	first, _, _ := strings.Cut(log.String(), "\n")
	for _, want := range []string{`"method":"POST"`, `"route":"/v1/sessions/{session_id}/turns"`, `"status":202`, `"bytes":`, `"duration":`} {
		if !strings.Contains(first, want) {
			t.Errorf("log line %s lacks %s", first, want)
		}
	}
}

func TestEveryAnswerHasSafeHeaders(t *testing.T) {
	s := newTestServer(t, &fake{sub: ended()})
	cached := map[string]bool{"/": true, "/docs": true, "/assets/{file}": true}
	for _, r := range s.routes() {
		h := ask(t, s, r.method, fill(r.pattern), "").Header()
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" && !cached[r.pattern] || !strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s %s: headers %v", r.method, r.pattern, h)
		}
	}
}

// ended is a stream that is over.
func ended() *script {
	s := newScript()
	close(s.events)
	return s
}
