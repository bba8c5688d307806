package main

import (
	"runtime/debug"
	"time"

	"github.com/rs/zerolog"

	"loadline/internal/llm"
	"loadline/internal/llm/anthropic"
	"loadline/internal/llm/demo"
	"loadline/internal/llm/known"
	"loadline/internal/llm/openai"
	"loadline/internal/manifest"
)

// model is one that the manifest names, as engines use it.
type model struct {
	provider llm.Provider
	window   llm.Window
	budget   *llm.Budget // shared by all models of one account; nil for none
}

// account is whose input tokens of a minute are counted together.
type account struct{ provider, baseURL, key string }

// models makes the models of a server, each once, whoever uses it.
type models struct {
	made    map[manifest.Model]model
	keys    map[manifest.Model]string
	secrets []string // the keys of all models
}

// add makes a model unless it is there. Budgets come with finish.
func (s *models) add(m manifest.Model) error {
	if _, ok := s.made[m]; ok {
		return nil
	}
	key, err := m.APIKey()
	if err != nil {
		return err
	}
	if key != "" {
		s.secrets = append(s.secrets, key)
	}
	if s.made == nil {
		s.made, s.keys = map[manifest.Model]model{}, map[manifest.Model]string{}
	}
	s.made[m], s.keys[m] = model{provider: newProvider(m, key), window: windowOf(m)}, key
	return nil
}

// finish gives each account that has a limit a budget. Of several limits for one
// account the smallest counts.
func (s *models) finish() {
	debug.FreeOSMemory() // the table of known models is gone, and nothing else has run yet
	limits := map[account]int64{}
	for m := range s.made {
		a := s.accountOf(m)
		if limit := m.InputTokensPerMinute; limit > 0 && (limits[a] == 0 || limit < limits[a]) {
			limits[a] = limit
		}
	}
	budgets := map[account]*llm.Budget{}
	for a, limit := range limits {
		budgets[a] = llm.NewBudget(limit)
	}
	for m, made := range s.made {
		made.budget = budgets[s.accountOf(m)]
		s.made[m] = made
	}
}

func (s *models) accountOf(m manifest.Model) account {
	return account{m.Provider, m.BaseURL, s.keys[m]}
}

// warn tells of the models whose window nobody knows.
func (s *models) warn(log zerolog.Logger) {
	for m, made := range s.made {
		if m.Provider != "demo" && made.window.ContextTokens == 0 {
			log.Warn().Str("model", m.Name).Msg("the context window of a model is not known and taken for 128000 tokens; set context_window beside its name")
		}
	}
}

// windowOf is what the manifest says of a model, else what is known of it.
func windowOf(m manifest.Model) llm.Window {
	w := llm.Window{ContextTokens: m.ContextWindow, OutputTokens: m.MaxOutputTokens}
	if m.Provider == "demo" || m.ContextWindow > 0 {
		return w
	}
	table, _ := known.Window(m.Provider, m.Name)
	w.ContextTokens = table.ContextTokens
	if w.OutputTokens == 0 && m.Provider == "openai" { // anthropic is told how long an answer may be
		w.OutputTokens = table.OutputTokens
	}
	return w
}

func newProvider(m manifest.Model, key string) llm.Provider {
	switch m.Provider {
	case "openai":
		return openai.New(openai.Config{BaseURL: m.BaseURL, Name: m.Name, Key: key, MaxOutputTokens: m.MaxOutputTokens, IdleTimeout: time.Duration(m.IdleTimeout)})
	case "anthropic":
		return anthropic.New(anthropic.Config{
			BaseURL: m.BaseURL, Name: m.Name, Key: key, APIVersion: m.APIVersion, Auth: anthropic.Auth(m.Auth),
			MaxOutputTokens: m.MaxOutputTokens, IdleTimeout: time.Duration(m.IdleTimeout),
		})
	}
	return demo.New(demo.Config{})
}
