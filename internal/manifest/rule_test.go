package manifest

import (
	"strings"
	"testing"
	"time"
)

func TestCheckText(t *testing.T) {
	tests := []struct {
		rule      string
		good, bad []string
	}{
		{"listen", []string{"127.0.0.1:0", ":80", "[::1]:65535", "example.org:80"},
			[]string{"80", "127.0.0.1", "::1:80", "127.0.0.1:http", "127.0.0.1:65536", "127.0.0.1:-1", ""}},
		{"host", []string{"localhost", "chat.example.org", "192.0.2.1", "[::1]", "under_score", "A"},
			[]string{"::1", "[127.0.0.1]", "[::1", "a:80", "[::1]:80", "*.example.org", "a/b", "a b", ".a", "a..b", "-a", ""}},
		{"origin", []string{"http://localhost", "http://localhost:5173", "https://chat.example.org", "http://[::1]:80", "http://192.0.2.1"},
			[]string{"localhost", "http://", "https://a/", "https://a/b", "https://a?", "https://a#", "ws://a", "https://u@a", "https://a:", "https://a:x", "https://*.a", "null", "*"}},
		{"url", []string{"http://127.0.0.1:11434/v1", "https://a.example/", "http://[::1]:1"},
			[]string{"a.example", "ftp://a", "http://", "http:///v1", "https://u:p@a", "https://a?x=1", "https://a?", "https://a#x", "http://a b"}},
		{"env", []string{"OPENAI_API_KEY", "_k1"}, []string{"sk-1", "1K", "A B", "A=B"}},
		{"digest", []string{"sha256:" + strings.Repeat("0a", 32)},
			[]string{strings.Repeat("0a", 32), "sha256:" + strings.Repeat("0A", 32), "sha256:" + strings.Repeat("0a", 31), "sha256:" + strings.Repeat("0a", 33)}},
		{"name", []string{"a", "docs-2.x_y", strings.Repeat("a", 64)}, []string{"", ".", "..", "-a", "a/b", "a b", "é", strings.Repeat("a", 65)}},
		{"tool", []string{"Read", "my tool", strings.Repeat("é", 128)}, []string{"", "a\nb", strings.Repeat("a", 129)}},
		{"line", []string{"", "Japanese", "日本語"}, []string{"a\nb", "a\x00", strings.Repeat("a", maxTextBytes+1)}},
		{"", []string{"", "any\nthing"}, nil},
	}
	for _, test := range tests {
		for _, text := range test.good {
			if err := checkText(test.rule, text); err != nil {
				t.Errorf("checkText(%s, %q) = %v", test.rule, text, err)
			}
		}
		for _, text := range test.bad {
			if checkText(test.rule, text) == nil {
				t.Errorf("checkText(%s, %q) is accepted", test.rule, text)
			}
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]string{
		"5s": "5s", "120s": "2m", "60m": "1h", "90m": "1h30m", "0s": "0s", "720h": "720h", "1500ms": "1.5s", "10s": "10s", "10m10s": "10m10s", "20h0m10s": "20h0m10s",
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || d.String() != want {
			t.Errorf("%q reads as %s, %v, want %s", text, d, err, want)
		}
		if again, err := time.ParseDuration(d.String()); err != nil || again != time.Duration(d) {
			t.Errorf("%q writes as %s, which is %s, %v", text, d, again, err)
		}
	}
	for _, text := range []string{"", "5", "-1s", "721h", "9999999h", "5 s", "∞"} {
		d := Duration(7)
		if err := d.UnmarshalText([]byte(text)); err == nil || d != 7 {
			t.Errorf("%q reads as %s, %v, want an error and no change", text, d, err)
		}
	}
}
