package store

import (
	"strings"
	"testing"
)

func TestTermsOfTexts(t *testing.T) {
	tests := []struct{ text, terms, all, any string }{
		{"", "", "", ""},
		{" - \"*\" ", "", "", ""},
		{"Use tabs", "use tabs", `"use" * AND "tabs" *`, `"tabs" *`},
		{"to be", "to be", `"to" AND "be"`, `"be" OR "to"`},
		{"黒猫", "黒猫 猫", `"黒猫"`, `"黒猫"`},
		{"猫", "猫", `"猫" *`, `"猫" *`},
		{"Go言語を", "go 言語 語を を", `"go" AND "言語 語を"`, `"言語" OR "語を"`},
		{"ユーザー", "ユー ーザ ザー ー", `"ユー ーザ ザー"`, `"ザー" OR "ユー" OR "ーザ"`},
		{"ｶﾞ か\u3099 Ｂ", "ガ が b", `"ガ" * AND "が" * AND "b"`, `"が" * OR "ガ" *`},
		{"ที่นี่", "ที่นี่ นี่", `"ที่นี่"`, `"ที่นี่"`},
		{"\u0301e\u0301 É", "e e", `"e" AND "e"`, `"e"`},
	}
	for _, test := range tests {
		if got := strings.TrimSpace(vocabulary("").indexed(test.text)); got != test.terms {
			t.Errorf("indexed(%q) = %q, want %q", test.text, got, test.terms)
		}
		runs := runsOf(test.text)
		if got := vocabulary("").all(runs); got != test.all {
			t.Errorf("all(%q) = %s, want %s", test.text, got, test.all)
		}
		if got := vocabulary("").any(runs); got != test.any {
			t.Errorf("any(%q) = %s, want %s", test.text, got, test.any)
		}
	}
}
