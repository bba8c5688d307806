// Package number holds the tool Primes, which computes. It needs no file, so the
// demo can show a long result in any folder, an empty one too.
package number

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// ToolName is the name of the tool.
const ToolName = "Primes"

const maxBelow = 1_000_000 // its primes take 538 KB

//go:embed primes.md
var description string

// Primes is the tool. It keeps no state.
type Primes struct{}

// Spec is what the model is told.
func (Primes) Spec() session.ToolSpec {
	return session.ToolSpec{
		Name:        ToolName,
		Description: strings.TrimSpace(description),
		Effect:      session.EffectRead,
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"below":{"type":"integer","minimum":1,"maximum":` + strconv.Itoa(maxBelow) + `,` +
			`"description":"All that are listed are smaller."}},` +
			`"required":["below"],"additionalProperties":false}`),
	}
}

// Run lists the primes that a call asks for.
func (Primes) Run(_ context.Context, call tool.Call) (session.Output, error) {
	var args struct{ Below *int }
	if err := tool.Decode(call.Arguments, &args); err != nil {
		return session.Output{}, err
	}
	if args.Below == nil || *args.Below < 1 || *args.Below > maxBelow {
		return session.Output{}, fmt.Errorf(`%w: "below" is required, from 1 to %d`, tool.ErrArguments, maxBelow)
	}
	list, count := primes(*args.Below)
	out := session.Output{Summary: fmt.Sprintf("Primes below %s: %s numbers", tool.Grouped(int64(*args.Below)), tool.Grouped(int64(count)))}
	if count > 0 {
		out.Content = &list
	}
	return out, nil
}

// primes lists the primes below a number, by the sieve of Eratosthenes.
func primes(below int) (list string, count int) {
	composite := make([]bool, below)
	var lines []byte
	for n := 2; n < below; n++ {
		if composite[n] {
			continue
		}
		count++
		lines = append(strconv.AppendInt(lines, int64(n), 10), '\n')
		for multiple := n * n; multiple < below; multiple += n {
			composite[multiple] = true
		}
	}
	return string(lines), count
}
