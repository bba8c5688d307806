package memory

import (
	"regexp"
	"strings"
)

// masked takes the place of a secret.
const masked = "[masked]"

// minSecretBytes is how long a configured key must be to be looked for: the short
// words that people give to servers that want no key are no secrets.
const minSecretBytes = 8

// newMask makes the function that hides secrets in text: the given ones wherever
// they occur, and whatever has the shape of a key. Masked text stays as it is when
// it is masked again.
func newMask(secrets []string) func(string) string {
	var pairs []string
	for _, secret := range secrets {
		if len(secret) >= minSecretBytes {
			pairs = append(pairs, secret, masked)
		}
	}
	own, all := strings.NewReplacer(pairs...), shapes()
	return func(text string) string { return maskShapes(all, own.Replace(text)) }
}

// shape is one way to recognise a secret. Its hints are in lower case; a text without
// any of them cannot hold it, which is found out fast.
type shape struct {
	hints   []string
	pattern *regexp.Regexp
	replace string
}

// shapes are tried in order. In doubt they hide: a word lost from a note is cheaper
// than a key kept in one.
func shapes() []shape {
	hints := []string{"key", "token", "secret", "passw", "passphrase", "pwd", "credential"}
	const name = `(?i)((?:api|access|secret|private|signing|encryption|account|auth|client)[_.-]?key|[a-z0-9]_key|token|secret|passw(?:or)?d|passphrase|pwd|credentials?)`
	return []shape{
		{
			[]string{"private key-----"},
			regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`), masked,
		},
		{
			[]string{"sk-", "sk_", "pk_", "rk_", "gh", "xox", "akia", "asia", "aiza", "glpat-", "hf_", "npm_", "eyj"},
			regexp.MustCompile(`\b(?:sk-[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]{7,}|sk-[A-Za-z0-9_-]{7,}[0-9][A-Za-z0-9_-]*|` +
				`[srp]k_(?:live|test)_[A-Za-z0-9]{8,}|gh[opusr]_[A-Za-z0-9]{16,}|` +
				`github_pat_[A-Za-z0-9_]{16,}|xox[a-z]-[A-Za-z0-9-]{8,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|glpat-[A-Za-z0-9_-]{16,}|` +
				`hf_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{16,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)`), masked,
		},
		{
			[]string{"://"},
			regexp.MustCompile(`(://[^/\s:@"']*:)[^/\s@"']+@`), "${1}" + masked + "@",
		},
		{
			[]string{"authorization", "x-api-key", "cookie"},
			regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|x-api-key|(?:set-)?cookie)(["']?\s*[:=]\s*["']?)[^\r\n"']+`), "${1}${2}" + masked,
		},
		{
			[]string{"bearer"},
			regexp.MustCompile(`(?i)\b(bearer\s+)(?:[A-Za-z0-9._~+/=-]{20,}|[A-Za-z._~+/=-]*[0-9][A-Za-z0-9._~+/=-]{5,})`), "${1}" + masked,
		},
		// NAME=value, also quoted, as in JSON, shells, YAML and INI files
		{hints, regexp.MustCompile(name + `((?:\\?["'])?[ \t]*(?:=>|:=|=|:)[ \t]*)(\\?["'])([^"'\r\n\\]{4,})`), "${1}${2}${3}" + masked},
		{hints, regexp.MustCompile(name + `((?:\\?["'])?[ \t]*(?:=>|:=|=|:)[ \t]*)([^\s"'\\,;&)\]}\[]{4,})`), "${1}${2}" + masked},
	}
}

func maskShapes(all []shape, text string) string {
	lower := strings.ToLower(text)
	for _, s := range all {
		for _, hint := range s.hints {
			if strings.Contains(lower, hint) {
				text = s.pattern.ReplaceAllString(text, s.replace)
				break
			}
		}
	}
	return text
}
