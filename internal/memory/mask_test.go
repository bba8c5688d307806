package memory

import (
	"strings"
	"testing"
)

func TestMask(t *testing.T) {
	const own = "sk-test-PROVIDER-0001"
	mask := newMask([]string{own, "short", "a key with \"quotes\""})
	for _, c := range []struct{ name, text, want string }{
		{"own key", "it is sk-test-PROVIDER-0001, keep it", "it is [masked], keep it"},
		{"own key inside a word", "xsk-test-PROVIDER-0001y", "x[masked]y"},
		{"own key with quotes", `say a key with "quotes" now`, "say [masked] now"},
		{"what is no secret", "a short word", "a short word"},
		{"assignment", "API_TOKEN=tok_test_0123456789abcdef", "API_TOKEN=[masked]"},
		{"export", "export DB_PASSWORD='hunter two' && run", "export DB_PASSWORD='[masked]' && run"},
		{"JSON", `{"api_key":"abcdef123456","n":1}`, `{"api_key":"[masked]","n":1}`},
		{"JSON in JSON", `{\"token\":\"abcdef123456\"}`, `{\"token\":\"[masked]\"}`},
		{"YAML", "client_secret: abcdef\nname: x", "client_secret: [masked]\nname: x"},
		{"several", "TOKEN=aaaa1111 SECRET=bbbb2222", "TOKEN=[masked] SECRET=[masked]"},
		{"query", "https://x.test/?token=abcd1234&n=1", "https://x.test/?token=[masked]&n=1"},
		{"user and password", "postgres://me:s3cret@db/x", "postgres://me:[masked]@db/x"},
		{"bearer", "Authorization: Bearer abcdef0123456789abcdef", "Authorization: [masked]"},
		{"bearer alone", "use bearer abcdef0123456789", "use bearer [masked]"},
		{"OpenAI", "sk-proj-abcDEF123456789", "[masked]"},
		{"GitHub", "ghp_abcdefghijklmnopqrstuvwxyz012345", "[masked]"},
		{"AWS", "AKIAIOSFODNN7EXAMPLE", "[masked]"},
		{"JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_123", "[masked]"},
		{"private key", "a -----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY----- b", "a [masked] b"},
		{"private key without its end", "-----BEGIN PRIVATE KEY-----\nMIIE", "[masked]"},
		{"prose", "The token bucket has max_tokens = 4096; the key is on the table, passwords are kept by a tool.", "The token bucket has max_tokens = 4096; the key is on the table, passwords are kept by a tool."},
		{"words with sk-", "a risk-averse task-management sk-learn-like-thing", "a risk-averse task-management sk-learn-like-thing"},
		{"bearers", "the ring bearer understands everything", "the ring bearer understands everything"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := mask(c.text)
			if got != c.want {
				t.Errorf("mask(%q) = %q, want %q", c.text, got, c.want)
			}
			if again := mask(got); again != got {
				t.Errorf("masked again: %q", again)
			}
		})
	}
}

func FuzzMaskNeverShowsASecret(f *testing.F) {
	const own = "sk-test-PROVIDER-0001"
	mask := newMask([]string{own})
	for _, seed := range []string{"", "a", "key=", `"token": "`, "-----BEGIN PRIVATE KEY-----", "sk-", "sk-test-PROVIDER-", own} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		got := mask(before + own + after)
		if strings.Contains(got, own) {
			t.Errorf("mask(%q) shows the secret: %q", before+own+after, got)
		}
	})
}
