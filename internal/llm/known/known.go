// Package known knows the windows of many models, from a table that is maintained
// elsewhere and comes with the program.
package known

import (
	"cmp"
	"slices"

	"charm.land/catwalk/pkg/catwalk"
	"charm.land/catwalk/pkg/embedded"

	"loadline/internal/llm"
)

// Window looks a model up by its exact name: first among those of the service whose
// protocol this is, anthropic or openai, then among those of all services, of which
// the smallest window counts. It is false when nobody knows the model.
//
// The table is read anew by each call, in some 15 ms, and not kept: it takes 2 MiB.
func Window(provider, model string) (llm.Window, bool) {
	var found []catwalk.Model
	for _, service := range embedded.GetAll() {
		at := slices.IndexFunc(service.Models, func(m catwalk.Model) bool { return m.ID == model && m.ContextWindow > 0 })
		if at < 0 {
			continue
		}
		if string(service.ID) == provider {
			found = []catwalk.Model{service.Models[at]}
			break
		}
		found = append(found, service.Models[at])
	}
	if len(found) == 0 {
		return llm.Window{}, false
	}
	smallest := slices.MinFunc(found, func(a, b catwalk.Model) int { return cmp.Compare(a.ContextWindow, b.ContextWindow) })
	return llm.Window{ContextTokens: smallest.ContextWindow, OutputTokens: smallest.DefaultMaxTokens}, true
}
