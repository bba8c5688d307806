package manifest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// maxTextBytes bounds names, addresses and paths.
const maxTextBytes = 1024

// checkText checks a text against the rule that its field names. Its errors go on
// after the key. They repeat nothing that may be a secret put in the wrong place.
func checkText(rule, text string) error {
	if rule == "" {
		return nil
	}
	if text == "" && rule != "line" {
		return errors.New("must not be empty; leave the key out instead")
	}
	if len(text) > maxTextBytes || strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Errorf("must be one line of at most %d bytes", maxTextBytes)
	}
	switch rule {
	case "url":
		return checkURL(text)
	case "listen":
		return checkListen(text)
	case "host":
		return checkHost(text)
	case "origin":
		return checkOrigin(text)
	}
	if form, ok := forms[rule]; ok && !form.pattern.MatchString(text) {
		return errors.New(form.message)
	}
	return nil
}

// CheckName checks the name of a project, or of the holder of a key. Its errors go
// on after the name.
func CheckName(name string) error { return checkText("name", name) }

// forms are the rules that are one pattern, and what to say; never changed.
var forms = map[string]struct { //nolint:gochecknoglobals // patterns are compiled once
	pattern *regexp.Regexp
	message string
}{
	"name": {regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`),
		"must be 1 to 64 letters, digits, dots, dashes and underscores, the first a letter or digit"},
	"tool": {regexp.MustCompile(`^.{1,128}$`), "must be at most 128 letters"},
	"env": {regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`),
		"must be the name of an environment variable that holds the key, not the key itself"},
	"digest": {regexp.MustCompile(`^sha256:[0-9a-f]{64}$`),
		"must be sha256: and 64 lower-case hexadecimal digits, as `server key new` prints it, not the key itself"},
	"version": {regexp.MustCompile(`^[A-Za-z0-9.-]{1,64}$`), "must be a version like 2023-06-01"},
}

func checkChoice(choices []string, text string) error {
	for _, choice := range choices {
		if text == choice {
			return nil
		}
	}
	quoted := make([]string, len(choices))
	for i, choice := range choices {
		quoted[i] = strconv.Quote(choice)
	}
	return errors.New("must be " + strings.Join(quoted, " or "))
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return errors.New("must be a URL that starts with http:// or https://")
	case u.User != nil:
		return errors.New("must hold no user and password: put the key where api_key_env or api_key_file says")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("must end with its path, without ? or #")
	}
	return nil
}

func checkListen(text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("must be host:port like 127.0.0.1:8080; port 0 picks a free one")
	}
	return nil
}

// loopback tells whether only this machine reaches an address that passed
// checkListen. Names are not looked up: of them only localhost is known.
func loopback(listen string) bool {
	host, _, _ := net.SplitHostPort(listen)
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

func checkHost(text string) error {
	inner, bracketed := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	address, err := netip.ParseAddr(inner)
	isIPv6 := err == nil && address.Is6()
	if bracketed == closed && (isIPv6 && bracketed || !isIPv6 && !bracketed && hostPattern.MatchString(text)) {
		return nil
	}
	return errors.New("must be a host name or address like chat.example.org or [::1], without scheme, port or *")
}

// hostPattern is what a host name or an IPv4 address looks like.
var hostPattern = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

func checkOrigin(text string) error {
	u, err := url.Parse(text)
	if err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Scheme+"://"+u.Host == text {
		host, port := u.Hostname(), u.Port()
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		_, portErr := strconv.ParseUint(port, 10, 16)
		if checkHost(host) == nil && (portErr == nil || !strings.Contains(strings.TrimPrefix(u.Host, host), ":")) {
			return nil
		}
	}
	return errors.New("must be an origin like https://chat.example.org or http://localhost:5173, without path or *")
}

// absolute resolves a path against the folder of the file that names it.
func absolute(dir, path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("is relative, and the current folder is not known: %w", err)
	}
	return path, nil
}
