package tool_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

func TestDecodeIsStrict(t *testing.T) {
	type arguments struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
		All    bool   `json:"all"`
	}
	tests := []struct{ name, arguments, wrong string }{
		{"all fields", `{"path":"a","offset":7,"all":true}`, ""},
		{"left out", `{"path":"a"}`, ""},
		{"unknown field", `{"path":"a","pth":"b"}`, `unknown field "pth"`},
		{"string for integer", `{"offset":"7"}`, `"offset" must be an integer, not string`},
		{"fraction for integer", `{"offset":7.5}`, `"offset" must be an integer, not number 7.5`},
		{"beyond int64", `{"offset":92233720368547758070}`, `"offset" must be an integer`},
		{"integer for boolean", `{"all":1}`, `"all" must be a boolean, not number`},
		{"list for string", `{"path":["a"]}`, `"path" must be a string, not array`},
		{"list for object", `["a"]`, "must be an object, not array"},
		{"text for object", `"a"`, "must be an object, not string"},
		{"cut", `{"path":"a`, "unexpected EOF"},
		{"empty", ``, "EOF"},
		{"two values", `{"path":"a"} {}`, "more than one JSON value"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := arguments{Offset: 42}
			err := tool.Decode(json.RawMessage(test.arguments), &got)
			switch {
			case test.wrong == "" && err != nil:
				t.Errorf("Decode(%s) = %v, want no error", test.arguments, err)
			case test.wrong == "" && got.Path != "a":
				t.Errorf("Decode(%s) gave %+v", test.arguments, got)
			case test.wrong != "" && (err == nil || !errors.Is(err, tool.ErrArguments) || !strings.Contains(err.Error(), test.wrong)):
				t.Errorf("Decode(%s) = %v, want ErrArguments with %q", test.arguments, err, test.wrong)
			case test.name == "left out" && got.Offset != 42:
				t.Errorf("a field that was left out became %d", got.Offset)
			}
		})
	}
}

func TestSetFindsExactNamesOnly(t *testing.T) {
	s := tool.NewSet(tooltest.Func{Name: "Read"}, tooltest.Func{Name: "Bash"}, tooltest.Func{Name: "Glob"})
	if got, want := s.Names(), []string{"Bash", "Glob", "Read"}; !slices.Equal(got, want) {
		t.Errorf("Names() = %q, want %q", got, want)
	}
	for i, spec := range s.Specs() {
		if spec.Name != s.Names()[i] {
			t.Errorf("Specs()[%d] is %s, want %s", i, spec.Name, s.Names()[i])
		}
		if found, ok := s.Find(spec.Name); !ok || found.Spec().Name != spec.Name {
			t.Errorf("Find(%q) = %v, %v", spec.Name, found, ok)
		}
	}
	for _, name := range []string{"", "read", "Rea", "Reads", "Zed"} {
		if _, ok := s.Find(name); ok {
			t.Errorf("Find(%q) found a tool", name)
		}
	}
	if _, ok := tool.NewSet().Find("Read"); ok {
		t.Error("an empty set has a tool")
	}
}

func TestSetRefusesDoubleNames(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("NewSet took two tools of one name")
		}
	}()
	tool.NewSet(tooltest.Func{Name: "Read"}, tooltest.Func{Name: "Read"})
}

func TestCutIsTheLongestWholePrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		limit := rapid.IntRange(-1, len(s)+1).Draw(t, "limit")
		got := tool.Cut(s, limit)
		if len(got) > max(0, limit) || !strings.HasPrefix(s, got) || !utf8.ValidString(got) {
			t.Fatalf("Cut(%q, %d) = %q", s, limit, got)
		}
		if _, next := utf8.DecodeRuneInString(s[len(got):]); next > 0 && len(got)+next <= limit {
			t.Fatalf("Cut(%q, %d) = %q leaves out a rune that fits", s, limit, got)
		}
	})
	if got := tool.Cut("\x80\x80\x80\x80\x80\x80", 5); len(got) < 2 {
		t.Errorf("Cut of bytes that are no text keeps %d of 5", len(got))
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1204: "1,204", 1234567: "1,234,567", -100: "-100", -1000: "-1,000"} {
		if got := tool.Grouped(n); got != want {
			t.Errorf("Grouped(%d) = %q, want %q", n, got, want)
		}
	}
}
