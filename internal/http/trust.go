package http

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
)

// hosts are the names under which the server may be addressed, lower case, without
// port. Others are refused, so that a name that an attacker points at this machine
// gives his page nothing.
type hosts map[string]bool

func (s *Server) newHosts() hosts {
	h := hosts{"localhost": true, "127.0.0.1": true, "::1": true}
	h[hostName(s.config.Settings.Listen)] = true
	for _, name := range s.config.Settings.AllowedHosts {
		h[hostName(name)] = true
	}
	delete(h, "")
	return h
}

func (h hosts) check(_ http.ResponseWriter, r *http.Request) error {
	if h[hostName(r.Host)] {
		return nil
	}
	return newProblem(codeMisdirectedHost, fmt.Sprintf("the Host header is %q: add its name to server.allowed_hosts if it is yours", r.Host))
}

// hostName is host without port and brackets, in lower case.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
}

// origins are the sites beside the server's own whose pages may use the API.
type origins struct {
	allowed map[string]bool
	guard   *http.CrossOriginProtection
}

func (s *Server) newOrigins() (*origins, error) {
	o := &origins{map[string]bool{}, http.NewCrossOriginProtection()}
	for _, origin := range s.config.Settings.AllowedOrigins {
		if err := o.guard.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("server.allowed_origins: %w", err)
		}
		o.allowed[origin] = true
	}
	return o, nil
}

// check lets pages of allowed origins read answers, and refuses what other pages may
// not do: to ask first (a preflight), or to change something.
func (o *origins) check(w http.ResponseWriter, r *http.Request) error {
	h, origin := w.Header(), r.Header.Get("Origin")
	h.Set("Vary", "Origin")
	preflight := r.Method == http.MethodOptions && origin != "" && r.Header.Get("Access-Control-Request-Method") != ""
	if preflight && !o.allowed[origin] || o.guard.Check(r) != nil {
		return newProblem(codeCrossOrigin, "")
	}
	if !o.allowed[origin] {
		return nil
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Expose-Headers", "Location, Idempotency-Replayed, Loadline-Session, Retry-After")
	if preflight {
		h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PATCH, DELETE")
		h.Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Loadline-Session")
		h.Set("Access-Control-Max-Age", "600")
	}
	return nil
}

// keys decides who may ask.
type keys struct {
	hashes  [][]byte        // of the keys; none means that everybody may
	open    map[string]bool // paths for which nobody needs one
	folders []string        // beginnings of such paths
}

func (s *Server) newKeys(routes []route) (*keys, error) {
	k := &keys{open: map[string]bool{}}
	for _, r := range routes {
		if folder, _, inFolder := strings.Cut(r.pattern, "{"); r.open && inFolder {
			k.folders = append(k.folders, folder)
		}
		k.open[r.pattern] = r.open
	}
	for name, hash := range s.config.Settings.Keys {
		digits, ok := strings.CutPrefix(hash, "sha256:")
		raw, err := hex.DecodeString(digits)
		if !ok || err != nil || len(raw) != sha256.Size {
			return nil, fmt.Errorf(`server.keys.%s: it must be "sha256:" and 64 hex digits`, name)
		}
		k.hashes = append(k.hashes, raw)
	}
	return k, nil
}

// check wants a key. OPTIONS needs none: a preflight cannot bring one, and the answer
// holds no data.
func (k *keys) check(w http.ResponseWriter, r *http.Request) error {
	if len(k.hashes) == 0 || k.isOpen(r.URL.Path) || r.Method == http.MethodOptions || k.known(r.Header.Get("Authorization")) {
		return nil
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="loadline"`)
	return newProblem(codeUnauthorized, "")
}

func (k *keys) isOpen(path string) bool {
	return k.open[path] || slices.ContainsFunc(k.folders, func(folder string) bool { return strings.HasPrefix(path, folder) })
}

// known compares with every key, in a time that tells nothing of them.
func (k *keys) known(authorization string) bool {
	scheme, key, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	hash, found := sha256.Sum256([]byte(strings.TrimSpace(key))), 0
	for _, known := range k.hashes {
		found |= subtle.ConstantTimeCompare(hash[:], known)
	}
	return found == 1
}
