package number

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"loadline/internal/tool"
)

func TestPrimes(t *testing.T) {
	tests := []struct {
		below         int
		summary, want string
	}{
		{1, "Primes below 1: 0 numbers", ""},
		{2, "Primes below 2: 0 numbers", ""},
		{3, "Primes below 3: 1 numbers", "2\n"},
		{20, "Primes below 20: 8 numbers", "2\n3\n5\n7\n11\n13\n17\n19\n"},
	}
	for _, tt := range tests {
		out, err := Primes{}.Run(t.Context(), tool.Call{Arguments: json.RawMessage(fmt.Sprintf(`{"below":%d}`, tt.below))})
		content := ""
		if out.Content != nil {
			content = *out.Content
		}
		if err != nil || out.Summary != tt.summary || content != tt.want {
			t.Errorf("below %d: %q, %q, %v, want %q, %q", tt.below, out.Summary, content, err, tt.summary, tt.want)
		}
	}
}

func TestPrimesAreAllPrimesBelowTheLargestNumber(t *testing.T) {
	list, count := primes(maxBelow)
	if lines := strings.Count(list, "\n"); count != 78_498 || lines != count {
		t.Errorf("%d primes in %d lines, want 78498", count, lines)
	}
	list, _ = primes(10_000)
	for n := range int64(10_000) {
		listed := strings.Contains("\n"+list, fmt.Sprintf("\n%d\n", n))
		if prime := big.NewInt(n).ProbablyPrime(0); prime != listed { // exact for numbers of this size
			t.Errorf("%d: listed %v, prime %v", n, listed, prime)
		}
	}
}

func TestPrimesRefusesArguments(t *testing.T) {
	for _, arguments := range []string{`{}`, `{"below":0}`, `{"below":-1}`, `{"below":1000001}`, `{"below":"9"}`, `{"below":9,"x":1}`, `[]`} {
		if _, err := (Primes{}).Run(t.Context(), tool.Call{Arguments: json.RawMessage(arguments)}); !errors.Is(err, tool.ErrArguments) {
			t.Errorf("%s: %v, want bad arguments", arguments, err)
		}
	}
}
