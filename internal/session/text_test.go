package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for _, c := range []struct{ name, s, want string }{
		{"plain", "a日😀", "a日😀"},
		{"NUL", "a\x00b", "a\ufffdb"},
		{"each invalid byte", "\xe6\x97x\xff", "\ufffd\ufffdx\ufffd"},
		{"a replacement character that was there", "\ufffd", "\ufffd"},
		{"a surrogate", "\xed\xa0\x80", "\ufffd\ufffd\ufffd"},
	} {
		if got := Clean(c.s); got != c.want {
			t.Errorf("%s: Clean(%q) = %q, want %q", c.name, c.s, got, c.want)
		}
	}
}

func TestCleanArguments(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"blank", " \n", "{}"},
		{"compacted", `{ "a" : [1, 2] }`, `{"a":[1,2]}`},
		{"a NUL", `{"a":"x` + "\x00" + `y"}`, `{"a":"x` + "\ufffd" + `y"}`},
		{"an escaped NUL", `{"a":"x\u0000y\u0000"}`, `{"a":"x\ufffdy\ufffd"}`},
		{"an escaped backslash before u0000", `{"a":"\\u0000"}`, `{"a":"\\u0000"}`},
		{"a backslash, then an escaped NUL", `{"a":"\\\u0000"}`, `{"a":"\\\ufffd"}`},
		{"half of a surrogate pair", `{"a":"x\ud800y\udc00"}`, `{"a":"x\ufffdy\ufffd"}`},
		{"two first halves", `{"a":"\ud83d\ud83d\ude00"}`, `{"a":"\ufffd\ud83d\ude00"}`},
		{"a whole pair", `{"a":"\ud83d\ude00"}`, `{"a":"\ud83d\ude00"}`},
		{"half of a pair before an escaped NUL", `{"\uD800\u0000":1}`, `{"\ufffd\ufffd":1}`},
		{"an escaped quote", `{"a":"\"{{{\\"}`, `{"a":"\"{{{\\"}`},
		{"deep", `{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`, `{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + `}`},
		{"too deep", `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, ""},
		{"cut", `{"path":"a.txt","content":"half`, ""},
		{"an array", `[1]`, ""},
		{"a string", `"x"`, ""},
		{"two objects", `{}{}`, ""},
		{"null", `null`, ""},
	} {
		if got := string(CleanArguments(c.raw)); got != c.want {
			t.Errorf("%s: CleanArguments(%q) = %q, want %q", c.name, c.raw, got, c.want)
		}
	}
}

// What is cleaned is clean, and cleaning it again changes nothing.
func FuzzClean(f *testing.F) {
	f.Add("a\x00\xff日")
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0) || Clean(got) != got {
			t.Errorf("Clean(%q) = %q", s, got)
		}
	})
}

// Arguments that are taken are valid, stay as they are when cleaned again, and hold no
// character that a strict parser would refuse.
func FuzzCleanArguments(f *testing.F) {
	f.Add(`{"a":"\ud800\u0000\\u0000\ud83d\ude00"}`)
	f.Fuzz(func(t *testing.T, raw string) {
		got := CleanArguments(raw)
		if got == nil {
			return
		}
		var value map[string]any
		if err := json.Unmarshal(got, &value); err != nil {
			t.Fatalf("CleanArguments(%q) = %s: %v", raw, got, err)
		}
		if strings.ContainsRune(fmt.Sprint(value), 0) || string(CleanArguments(string(got))) != string(got) {
			t.Errorf("CleanArguments(%q) = %s", raw, got)
		}
	})
}

// The hand-written encoder writes what the standard library reads back as the same
// text, without HTML escaping.
func FuzzAppendJSONString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n\t\r\b\x1f", "<&>", "日😀\u2028", "\xff\xfe", "a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		encoded := AppendJSONString([]byte("x"), s)[1:]
		var got string
		if err := json.Unmarshal(encoded, &got); err != nil {
			t.Fatalf("%q becomes %s: %v", s, encoded, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); utf8.ValidString(s) && got != want {
			t.Errorf("%q comes back as %q", s, got)
		}
		if strings.Contains(string(encoded), `\u003c`) {
			t.Errorf("%q is escaped for HTML: %s", s, encoded)
		}
	})
}

func TestParseCursor(t *testing.T) {
	for _, c := range []struct {
		text string
		want Cursor
		ok   bool
	}{
		{"", Cursor{Offset: -1}, true},
		{"0", Cursor{Offset: -1}, true},
		{"42", Cursor{Seq: 42, Offset: -1}, true},
		{"42.0", Cursor{Seq: 42}, true},
		{"42.1375", Cursor{Seq: 42, Offset: 1375}, true},
		{"now", Cursor{Offset: -1, Live: true}, true},
		{"9223372036854775807", Cursor{Seq: 9223372036854775807, Offset: -1}, true},
		{"9223372036854775808", Cursor{}, false},
		{"abc", Cursor{}, false}, {"-1", Cursor{}, false}, {"+1", Cursor{}, false}, {" 1", Cursor{}, false}, {"1 ", Cursor{}, false},
		{"1.", Cursor{}, false}, {".1", Cursor{}, false}, {"1.2.3", Cursor{}, false}, {"1.-2", Cursor{}, false}, {"1.+2", Cursor{}, false},
		{"0x1", Cursor{}, false}, {"1_0", Cursor{}, false}, {"NOW", Cursor{}, false}, {"１", Cursor{}, false},
	} {
		got, err := ParseCursor(c.text)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("ParseCursor(%q) = %+v, %v, want %+v", c.text, got, err, c.want)
		}
	}
}

func TestParseIDs(t *testing.T) {
	good := strings.Repeat("0123456789abcdef", 2)
	for _, c := range []struct {
		digits string
		ok     bool
	}{
		{good, true}, {strings.ToUpper(good), false}, {good[1:], false}, {good + "0", false}, {"", false}, {good[:31] + "g", false}, {good[:31] + "/", false},
	} {
		if _, err := ParseID("ses_" + c.digits); (err == nil) != c.ok {
			t.Errorf("ParseID(ses_%s): %v", c.digits, err)
		}
		if _, err := ParseTurnID("trn_" + c.digits); (err == nil) != c.ok {
			t.Errorf("ParseTurnID(trn_%s): %v", c.digits, err)
		}
	}
	if _, err := ParseID("trn_" + good); err == nil {
		t.Error("the id of a turn is taken for a session's")
	}
	if id := NewID(); id >= NewID() {
		t.Error("ids do not sort by time")
	}
}
