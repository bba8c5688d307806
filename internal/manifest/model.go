package manifest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode"
)

const (
	providerDemo      = "demo"
	providerOpenAI    = "openai"
	providerAnthropic = "anthropic"
)

// maxKeyBytes bounds a file that holds an API key.
const maxKeyBytes = 64 << 10

// Model is the section [model], and those of the models of memory: which model is
// asked, and how patiently. It never holds a key.
type Model struct {
	// Provider is openai (any compatible server), anthropic or demo. Default demo.
	Provider string `toml:"provider" oneof:"openai anthropic demo"`
	// Name of the model at the provider. No default; demo needs none.
	Name string `toml:"name,omitempty" rule:"text"`
	// BaseURL of the service. Default: the provider's own.
	BaseURL string `toml:"base_url,omitempty" rule:"url"`
	// APIKeyEnv names the environment variable that holds the key. Default, without
	// BaseURL and APIKeyFile: OPENAI_API_KEY or ANTHROPIC_API_KEY.
	APIKeyEnv string `toml:"api_key_env,omitempty" rule:"env"`
	// APIKeyFile names a file that holds the key, instead of APIKeyEnv; absolute
	// after Load.
	APIKeyFile string `toml:"api_key_file,omitempty" rule:"path"`
	// APIVersion is the anthropic-version that is sent. Default: that of the
	// client library; 2023-06-01 with a BaseURL. Only for anthropic.
	APIVersion string `toml:"api_version,omitempty" rule:"version"`
	// Auth is the header that carries the key: "bearer" or "x-api-key". Default:
	// that of the client library; x-api-key with a BaseURL. Only for anthropic.
	Auth string `toml:"auth,omitempty" oneof:"bearer x-api-key"`
	// ContextWindow is how many tokens the model takes, its answer included.
	// Default 0: from a table of known models, else 128,000.
	ContextWindow int64 `toml:"context_window,omitempty" min:"1024" max:"1000000000"`
	// MaxOutputTokens bounds one answer. Default 0: the provider's own; 8192 for
	// anthropic.
	MaxOutputTokens int64 `toml:"max_output_tokens,omitempty" min:"1" max:"1000000000"`
	// InputTokensPerMinute is what the service allows the key; all models of this
	// server with the same service and key share it. Default 0: no limit.
	InputTokensPerMinute int64 `toml:"input_tokens_per_minute,omitempty" min:"1000" max:"1000000000"`
	// MaxAttempts bounds the requests for one answer. Default 4.
	MaxAttempts int `toml:"max_attempts" min:"1" max:"100"`
	// RetryMaxWait bounds the wait before another attempt. Default 30s.
	RetryMaxWait Duration `toml:"retry_max_wait"`
	// IdleTimeout bounds the silence between two pieces of a stream. Default 2m.
	IdleTimeout Duration `toml:"idle_timeout"`
}

// APIKey reads the key, without white space around it. It is empty for demo, and
// for a server with a BaseURL for which no key is configured. It fails when what
// should hold the key is missing or empty, and never tells a key in its error.
func (m Model) APIKey() (string, error) {
	key, from, err := m.readKey()
	if err != nil || from == "" {
		return "", err
	}
	key = strings.TrimSpace(key)
	if key == "" {
		return "", fmt.Errorf("no API key for %s: %s is not set or empty", m.Provider, from)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return "", fmt.Errorf("API key for %s: %s holds more than one line, or control characters", m.Provider, from)
	}
	return key, nil
}

// readKey tells the key and where it is from; from is empty when there is none.
func (m Model) readKey() (key, from string, err error) {
	switch {
	case m.Provider == providerDemo:
		return "", "", nil
	case m.APIKeyEnv != "":
		return os.Getenv(m.APIKeyEnv), "environment variable " + m.APIKeyEnv, nil
	case m.APIKeyFile != "":
		text, err := readText(m.APIKeyFile, maxKeyBytes)
		if err != nil {
			return "", "", fmt.Errorf("API key for %s: file %s %w", m.Provider, m.APIKeyFile, err)
		}
		return text, "file " + m.APIKeyFile, nil
	}
	return "", "", nil
}

// check tells what is missing from an effective model, or has no use in it, and
// the key that it is about.
func (m Model) check() (key string, err error) {
	onlyAnthropic := errors.New("has a meaning for provider anthropic only")
	noUse := errors.New("has no use with provider demo: set provider beside it")
	switch demo := m.Provider == providerDemo; {
	case demo && m.BaseURL != "":
		return "base_url", noUse
	case demo && m.APIKeyEnv != "":
		return "api_key_env", noUse
	case demo && m.APIKeyFile != "":
		return "api_key_file", noUse
	case m.Provider != providerAnthropic && m.APIVersion != "":
		return "api_version", onlyAnthropic
	case m.Provider != providerAnthropic && m.Auth != "":
		return "auth", onlyAnthropic
	case !demo && m.Name == "":
		return "name", fmt.Errorf("is missing: set the name that provider %s gives the model", m.Provider)
	}
	return "", nil
}
