package llm

import (
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	connectTimeout   = 10 * time.Second
	idleConnTimeout  = 90 * time.Second
	idleConnsPerHost = 256
	maxHeaderBytes   = 64 << 10
	// bufferBytes is that of each connection and direction: a request with the tools
	// and a short history goes out in one write.
	bufferBytes = 16 << 10
)

// NewClient makes the HTTP client of a provider. It keeps connections for reuse,
// and turns each answer that is no success, redirects included, into an *Error,
// of whose body at most MaxErrorBytes are read; http.Client wraps it. In its
// text each of the secrets is replaced. The environment's proxy is used, but
// never for loopback addresses.
func NewClient(headerTimeout time.Duration, secrets ...string) *http.Client {
	return &http.Client{
		Transport: &transport{
			base: &http.Transport{
				Proxy:                  http.ProxyFromEnvironment,
				DialContext:            (&net.Dialer{Timeout: connectTimeout}).DialContext,
				ForceAttemptHTTP2:      true,
				TLSHandshakeTimeout:    connectTimeout,
				ResponseHeaderTimeout:  headerTimeout,
				MaxResponseHeaderBytes: maxHeaderBytes,
				MaxIdleConns:           2 * idleConnsPerHost,
				MaxIdleConnsPerHost:    idleConnsPerHost,
				IdleConnTimeout:        idleConnTimeout,
				WriteBufferSize:        bufferBytes,
				ReadBufferSize:         bufferBytes,
				DisableCompression:     true, // a stream is read as it comes
			},
			secrets: secrets,
		},
	}
}

type transport struct {
	base    *http.Transport
	secrets []string
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil || resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, err
	}
	defer resp.Body.Close()
	// What can be read is enough; a body that breaks off still has its status.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, MaxErrorBytes))
	for _, secret := range t.secrets {
		if secret != "" {
			body = []byte(strings.ReplaceAll(string(body), secret, "[secret]"))
		}
	}
	return nil, StatusError(resp.StatusCode, resp.Header, body)
}

// CloseIdleConnections lets http.Client close what it keeps.
func (t *transport) CloseIdleConnections() { t.base.CloseIdleConnections() }
