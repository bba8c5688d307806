package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"loadline/internal/session"
)

// stage stores open records with these claims and returns their ids.
func stage(tb rapid.TB, s *Store, project string, claims ...string) []session.RecordID {
	tb.Helper()
	from := session.NewID()
	var ids []session.RecordID
	err := s.write(context.Background(), "stage", func(c *connection) error {
		for i, claim := range claims {
			r := session.Record{ID: session.NewRecordID(from, 1, 9, i), Project: project, SessionID: from, Kind: session.RecordFact,
				Claim: claim, Why: "because", Evidence: []int64{1}, CreatedAt: session.Now()}
			ids = append(ids, r.ID)
			if err := insertRecord(c, &r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return ids
}

// found is what a search finds: claims, and names of documents.
func found(tb testing.TB, s *Store, project, query string) []string {
	tb.Helper()
	hits, err := s.SearchMemory(context.Background(), project, query, 50)
	if err != nil {
		tb.Fatalf("SearchMemory(%q): %v", query, err)
	}
	names := []string{}
	for _, h := range hits {
		if h.Excerpt == "" {
			tb.Errorf("a hit of %q has no excerpt: %+v", query, h)
		}
		if h.Record != nil {
			names = append(names, h.Record.Claim)
		} else {
			names = append(names, string(h.Document.Name))
		}
	}
	return names
}

func TestSearchFindsText(t *testing.T) {
	s := openStore(t, t.TempDir())
	stage(t, s, "p", "The user prefers tabs over spaces", "We decided to use PostgreSQL for the ledger",
		"ユーザーは日本語の回答を好む", "東京リージョンにデプロイする", "黒猫を飼っている", "ｶﾞﾗｽの扱いに注意", "ผู้ใช้ชอบภาษาไทย",
		"Straße naïve café", "C++ is preferred to Rust", "MemorySearch takes extract_threshold_bytes", "用户喜欢简体中文", "사용자는 한국어를 선호한다")
	stage(t, s, "other", "The user prefers spaces")
	tests := []struct {
		name, query string
		want        []string
	}{
		{"word", "tabs", []string{"The user prefers tabs over spaces"}},
		{"another case", "POSTGRESQL", []string{"We decided to use PostgreSQL for the ledger"}},
		{"beginning of a word", "ledg", []string{"We decided to use PostgreSQL for the ledger"}},
		{"inside a word", "gresq", []string{"We decided to use PostgreSQL for the ledger"}},
		{"all words in any order", "spaces user", []string{"The user prefers tabs over spaces"}},
		{"only some of the words", "which ledgers and databases: the ledger", []string{"We decided to use PostgreSQL for the ledger"}},
		{"Japanese", "日本語の回答", []string{"ユーザーは日本語の回答を好む"}},
		{"two characters", "日本", []string{"ユーザーは日本語の回答を好む"}},
		{"one character, first", "黒", []string{"黒猫を飼っている"}},
		{"one character, last of its run", "意", []string{"ｶﾞﾗｽの扱いに注意"}},
		{"one character, in the midst", "猫", []string{"黒猫を飼っている"}},
		{"a Japanese question", "東京のどこにデプロイしますか？", []string{"東京リージョンにデプロイする"}},
		{"Japanese in another order", "回答の日本語", []string{"ユーザーは日本語の回答を好む"}},
		{"long sound", "ユーザー", []string{"ユーザーは日本語の回答を好む"}},
		{"half width", "ガラス", []string{"ｶﾞﾗｽの扱いに注意"}},
		{"full width", "ｔａｂｓ", []string{"The user prefers tabs over spaces"}},
		{"Thai", "ภาษาไทย", []string{"ผู้ใช้ชอบภาษาไทย"}},
		{"Chinese", "简体", []string{"用户喜欢简体中文"}},
		{"Korean without its particle", "한국어", []string{"사용자는 한국어를 선호한다"}},
		{"accents", "cafe naive", []string{"Straße naïve café"}},
		{"part of an identifier", "threshold", []string{"MemorySearch takes extract_threshold_bytes"}},
		{"signs alone", "++", []string{"C++ is preferred to Rust"}},
		{"a pattern's sign", "%", []string{}},
		{"nothing", "zebra", []string{}},
		{"quotes and operators", `"tabs" AND NOT (spaces* OR NEAR(x, 2)) ^project:p {terms}:`, []string{"The user prefers tabs over spaces"}},
		{"a lone quote", `"`, []string{}},
		{"statements", `'; DROP TABLE records; --`, []string{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, found(t, s, "p", test.query)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSearchRanksWhatSaysMore(t *testing.T) {
	s := openStore(t, t.TempDir())
	stage(t, s, "p", "deploy on Friday is allowed for the docs and for nothing else that we have", "deploy, deploy and deploy", "a", "b", "c", "d")
	want := []string{"deploy, deploy and deploy", "deploy on Friday is allowed for the docs and for nothing else that we have"}
	if diff := cmp.Diff(want, found(t, s, "p", "deploy")); diff != "" {
		t.Error(diff)
	}
}

func TestSearchRefusesQueries(t *testing.T) {
	s := openStore(t, t.TempDir())
	for name, query := range map[string]string{"empty": "", "blank": " \n\t ", "too long": strings.Repeat("あ", 1001), "far too long": strings.Repeat("x", 100_000)} {
		if _, err := s.SearchMemory(t.Context(), "p", query, 10); !errors.Is(err, session.ErrQuery) {
			t.Errorf("%s: %v, want ErrQuery", name, err)
		}
	}
	for name, query := range map[string]string{"longest": strings.Repeat("あ", 1000), "most words": strings.Repeat("a ", 500), "no text": "\x00\xff", "most signs": strings.Repeat(`"`, 1000)} {
		if hits, err := s.SearchMemory(t.Context(), "p", query, 10); err != nil || len(hits) > 0 {
			t.Errorf("%s: %v, %v", name, hits, err)
		}
	}
}

func TestExcerptShowsWhatWasFound(t *testing.T) {
	s := openStore(t, t.TempDir())
	stage(t, s, "p", strings.Repeat("何もない。", 100)+"Ｚｅｂｒａを飼う"+strings.Repeat("何もない。", 100))
	hits, err := s.SearchMemory(t.Context(), "p", "zebra", 1)
	if err != nil || len(hits) != 1 {
		t.Fatal(hits, err)
	}
	got := hits[0].Excerpt
	if !strings.Contains(got, "Ｚｅｂｒａ") || !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "…") || len(got) > excerptBytes+6 || strings.ToValidUTF8(got, "") != got {
		t.Errorf("excerpt %q", got)
	}
}

// Two projects whose terms begin alike, which is rare, still see nothing of each other.
func TestSearchIsOfOneProjectWhateverItsVocabulary(t *testing.T) {
	names := map[vocabulary]string{}
	one, other := "", ""
	for n := 0; other == ""; n++ {
		name := fmt.Sprint("p", n)
		v := vocabularyOf(name)
		if first, taken := names[v]; taken {
			one, other = first, name
		}
		names[v] = name
	}
	s := openStore(t, t.TempDir())
	stage(t, s, one, "zebra")
	for project, want := range map[string]int{one: 1, other: 0} {
		if hits, err := s.SearchMemory(t.Context(), project, "zebra", 10); err != nil || len(hits) != want {
			t.Errorf("%s: %+v, %v, want %d", project, hits, err, want)
		}
	}
}

func FuzzSearch(f *testing.F) {
	s := openStore(f, f.TempDir())
	stage(f, s, "p", "The user prefers tabs", "日本語の回答を好む", `quotes " and (operators) AND * ^ : -`)
	for _, query := range []string{`"`, `a"b`, `x* AND`, "NEAR(", "ー", "\u3099", "\u0301", "ก็", "가", `\`, "%_"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if _, err := s.SearchMemory(context.Background(), "p", query, 10); err != nil && !errors.Is(err, session.ErrQuery) {
			t.Errorf("SearchMemory(%q): %v", query, err)
		}
	})
}

func BenchmarkSearchMemory(b *testing.B) {
	s := openStore(b, b.TempDir())
	subjects := []string{"the parser", "the ledger", "PostgreSQL", "the deploy script", "デプロイの手順", "請求書の形式", "the API client"}
	for n := 0; n < 10_000; n += 500 {
		var claims []string
		for i := range 500 {
			claims = append(claims, fmt.Sprintf("The user prefers for %s number %d that the review comes before the merge, ユーザーは日本語の回答%dを好む、理由は読みやすさである", subjects[(n+i)%len(subjects)], n+i, n+i))
		}
		stage(b, s, "p", claims...)
	}
	for name, query := range map[string]string{
		"rare": "ledger 4321", "frequent": "the user", "frequent Japanese": "日本語の回答", "one character": "語", "two characters": "理由",
		"any": "why does the user zebra prefer the review", "any Japanese": "読みやすい日本語の回答とは何ですか、理由も教えてください", "signs": "%%", "inside a word": "eploy",
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.SearchMemory(context.Background(), "p", query, 10); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
