package memory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"loadline/internal/session"
	"loadline/internal/tool"
)

func submitted1(fields string) string { return `{"records":[{` + fields + `}]}` }

const goodFields = `"kind":"decision","claim":"We use Go.","why":"It is fast.","evidence":[3]`

func TestSubmission(t *testing.T) {
	many := `{"records":[` + strings.TrimSuffix(strings.Repeat(`{`+goodFields+`},`, maxRecords+1), ",") + `]}`
	for _, c := range []struct{ name, arguments, want string }{
		{"good", submitted1(goodFields), ""},
		{"none", `{"records":[]}`, ""},
		{"stale", submitted1(goodFields + `,"stale_after":"2031-05-31"`), ""},
		{"never stale", submitted1(goodFields + `,"stale_after":null`), ""},
		{"not there", `{}`, "records is missing"},
		{"null", `{"records":null}`, "records is missing"},
		{"no list", `{"records":{}}`, `"records" must be an array`},
		{"unknown field", `{"records":[],"more":1}`, `unknown field "more"`},
		{"unknown field of a record", submitted1(goodFields + `,"state":"closed"`), `unknown field "state"`},
		{"too many", many, "65 records, at most 64"},
		{"kind", submitted1(`"kind":"wish","claim":"c","why":"w","evidence":[3]`), `records[0].kind is "wish"`},
		{"blank claim", submitted1(`"kind":"fact","claim":" \n","why":"w","evidence":[3]`), "records[0].claim is blank"},
		{"long claim", submitted1(`"kind":"fact","claim":"` + strings.Repeat("あ", 1001) + `","why":"w","evidence":[3]`), "claim has 1001 characters"},
		{"no why", submitted1(`"kind":"decision","claim":"c","evidence":[3]`), "records[0].why is blank"},
		{"no evidence", submitted1(`"kind":"fact","claim":"c","why":"w","evidence":[]`), "evidence has 0 numbers"},
		{"evidence before", submitted1(`"kind":"fact","claim":"c","why":"w","evidence":[2]`), "names item 2: only items 3 to 9"},
		{"evidence after", submitted1(`"kind":"fact","claim":"c","why":"w","evidence":[3,10]`), "names item 10"},
		{"evidence of words", submitted1(`"kind":"fact","claim":"c","why":"w","evidence":["3"]`), "must be"},
		{"date", submitted1(goodFields + `,"stale_after":"soon"`), `stale_after is "soon"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			done := false
			s := &submission{from: 3, to: 9, mask: newMask(nil), done: func() { done = true }}
			_, err := s.Run(t.Context(), tool.Call{Arguments: json.RawMessage(c.arguments)})
			if c.want == "" {
				if err != nil || !done {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || done {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if v, records, refusal := s.result(); refusal == "" || v != verdictInvalid || records != nil {
				t.Errorf("verdict %d, %d records", v, len(records))
			}
		})
	}
}

func TestSubmittedRecordIsCleanAndMasked(t *testing.T) {
	s := &submission{from: 1, to: 9, mask: newMask([]string{"sk-test-PROVIDER-0001"}), done: func() {}}
	_, err := s.Run(t.Context(), tool.Call{Arguments: json.RawMessage(submitted1(
		`"kind":"fact","claim":" the key is sk-test-PROVIDER-0001 ","why":"API_TOKEN=tok_test_0123456789abcdef","evidence":[3,1,3],"stale_after":"2031-05-31"`))})
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := s.result()
	want := []session.Record{{Kind: session.RecordFact, Claim: "the key is [masked]", Why: "API_TOKEN=[masked]", Evidence: []int64{1, 3},
		StaleAfter: got[0].StaleAfter, State: session.RecordOpen}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if at := got[0].StaleAfter.String(); at != "2031-06-01T00:00:00.000000Z" {
		t.Errorf("stale after %s", at)
	}
}

// What the schema tells the model is what the host checks.
func TestSchemaSaysWhatIsChecked(t *testing.T) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(submitSchema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("submit.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("submit.json")
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, k := range session.RecordKinds() {
		kinds = append(kinds, fmt.Sprintf("%q", k))
	}
	if !strings.Contains(submitSchema, strings.Join(kinds, ", ")) {
		t.Error("the schema lists other kinds")
	}
	for _, arguments := range []string{
		submitted1(goodFields), `{"records":[]}`, submitted1(goodFields + `,"stale_after":null`), `{}`, `{"records":[],"x":1}`,
		submitted1(`"kind":"wish","claim":"c","why":"w","evidence":[3]`), submitted1(`"kind":"fact","claim":"","why":"w","evidence":[3]`),
		submitted1(`"kind":"fact","claim":"c","why":"w","evidence":[]`), submitted1(`"kind":"fact","claim":"c","evidence":[3]`),
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(arguments))
		if err != nil {
			t.Fatal(err)
		}
		s := &submission{from: 1, to: 9, mask: plain, done: func() {}}
		_, refused := s.Run(t.Context(), tool.Call{Arguments: json.RawMessage(arguments)})
		if bySchema := schema.Validate(value); (bySchema == nil) != (refused == nil) {
			t.Errorf("%s: the schema says %v, the host %v", arguments, bySchema, refused)
		}
	}
}
