package memory

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"loadline/internal/session"
)

// deskOf is a desk with documents that may cite records 1 to 4, and the new records 5
// to 7.
func deskOf(documents ...session.Document) *desk {
	var set []session.Record
	for n := int64(5); n <= 7; n++ {
		set = append(set, session.Record{N: n, ID: recordID(n)})
	}
	return newDesk(project, documents, set, func(s string) string { return strings.ReplaceAll(s, "secret", masked) }, func() {})
}

func recordID(n int64) session.RecordID { return session.RecordID(fmt.Sprintf("rec_%d", n)) }

// known are the records that stored documents may cite.
func known() map[int64]session.RecordID {
	return map[int64]session.RecordID{1: recordID(1), 2: recordID(2), 3: recordID(3), 4: recordID(4)}
}

func stored(name session.DocumentName, version int64, text string) session.Document {
	return session.Document{Project: project, Name: name, Version: version, Text: text, Records: refs(text, known())}
}

func TestCitationsAreFound(t *testing.T) {
	tests := []struct {
		text            string
		cited, standing []int64
	}{
		{"", nil, nil},
		{"a [^12] b [^3][^3]", []int64{3, 12}, []int64{3, 12}},
		{"a[1] [^x] [^] [^-1] [^1 ] [^^2] [^1234567890123456789]", nil, nil},
		{"~~a [^1]~~ b [^2]", []int64{1, 2}, []int64{2}},
		{"~~a [^1]\nb [^2]~~ c [^3]", []int64{1, 2, 3}, []int64{3}},
		{"a [^1] ~~ b [^2]", []int64{1, 2}, []int64{1, 2}},
		{"~~a [^1]\n\nb [^2]~~", []int64{1, 2}, []int64{1, 2}},
		{"~~a~~ [^1] ~~b [^2]~~", []int64{1, 2}, []int64{1}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.cited, cited(test.text)); diff != "" {
			t.Errorf("cited(%q): %s", test.text, diff)
		}
		if diff := cmp.Diff(test.standing, cited(unstruck(test.text))); diff != "" {
			t.Errorf("cited(unstruck(%q)): %s", test.text, diff)
		}
	}
}

func TestDeskChangesTexts(t *testing.T) {
	base := "- a a [^1]\n- b [^2]"
	write := func(name, text string) func(*desk) error {
		return func(d *desk) error { return d.write(name, text) }
	}
	edit := func(name, old, replacement string) func(*desk) error {
		return func(d *desk) error { return d.edit(name, old, replacement) }
	}
	tests := []struct {
		name   string
		change func(*desk) error
		want   string // of decisions, after a change that is taken
		refuse string // part of the error
	}{
		{"written", write("decisions", " x [^5]\x00 secret\n"), "x [^5]\ufffd [masked]", ""},
		{"edited", edit("decisions", "b [^2]", "c [^2][^5]"), "- a a [^1]\n- c [^2][^5]", ""},
		{"cut", edit("decisions", "- b [^2]", ""), "- a a [^1]", ""},
		{"longest", write("decisions", strings.Repeat("x", session.MaxDocumentBytes)), strings.Repeat("x", session.MaxDocumentBytes), ""},
		{"unknown document", write("notes", "x"), "", "there is no document"},
		{"edit of an unknown document", edit("notes", "x", "y"), "", "there is no document"},
		{"too long", write("decisions", strings.Repeat("x", session.MaxDocumentBytes+1)), "", "at most 32,768 are allowed"},
		{"unknown record", write("decisions", "x [^5] [^8]"), "", "[^8] is no record"},
		{"emptied", write("decisions", " \n"), "", "cannot be made empty"},
		{"edit of nothing", edit("decisions", "", "x"), "", "old is empty"},
		{"edit of what is not there", edit("decisions", "z", "x"), "", "old is not in the document"},
		{"edit of what is there twice", edit("decisions", "a", "x"), "", "old is in the document 2 times"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := deskOf(stored("decisions", 1, base))
			err := test.change(d)
			if (err == nil) != (test.refuse == "") || err != nil && !strings.Contains(err.Error(), test.refuse) {
				t.Errorf("%v, want %q", err, test.refuse)
			}
			if err != nil {
				test.want = base
			}
			if got, _ := d.read("decisions"); got != test.want {
				t.Errorf("decisions: %q, want %q", got, test.want)
			}
		})
	}
}

func TestDeskFinishes(t *testing.T) {
	closed := func(reasons ...session.CloseReason) (all []closing) {
		for i, r := range reasons {
			all = append(all, closing{int64(5 + i), r})
		}
		return all
	}
	const base = "- a [^1]\n- ~~b [^2]~~"
	tests := []struct {
		name, decisions, summary string
		closed                   []closing
		refuse                   string // part of the error
	}{
		{"discarded", "", "", closed("discarded", "discarded", "discarded"), ""},
		{"applied", base + "\n- c [^5]", "", closed("applied", "duplicate", "superseded"), ""},
		{"applied in the summary", "", "- c [^5]", closed("applied", "duplicate", "superseded"), ""},
		{"duplicate that is cited", "- a [^1][^6]", "", closed("discarded", "duplicate", "discarded"), ""},
		{"struck at once", base + "\n- ~~c [^5]~~\n- d [^6]", "", closed("superseded", "applied", "discarded"), ""},
		{"struck before", "- a [^1]", "", closed("discarded", "discarded", "discarded"), ""},
		{"struck now", "- ~~a [^1]~~ c [^5]", "", closed("applied", "discarded", "discarded"), ""},
		{"moved", "- c [^5]", "- a [^1]", closed("applied", "discarded", "discarded"), ""},
		{"lost", "- c [^5]", "", closed("applied", "discarded", "discarded"), "decisions has lost [^1]"},
		{"applied but not cited", "", "", closed("applied", "discarded", "discarded"), "record 5 is applied, but no document cites it"},
		{"applied but struck", base + "~~c [^5]~~", "", closed("applied", "discarded", "discarded"), "record 5 is applied, but no document cites it"},
		{"superseded but standing", base + "- c [^5]", "", closed("superseded", "discarded", "discarded"), "record 5 is superseded, but"},
		{"discarded but cited", base + "- c [^5]", "", closed("discarded", "discarded", "discarded"), "record 5 is discarded, but"},
		{"not all", "", "", closed("discarded", "discarded"), "record 7 is not closed"},
		{"none", "", "", nil, "record 5 is not closed"},
		{"another", "", "", []closing{{1, "discarded"}}, "record 1 is not among"},
		{"twice", "", "", append(closed("discarded"), closing{5, "applied"}), "record 5 is closed twice"},
		{"another reason", "", "", closed("done"), `the reason of record 5 is "done"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := deskOf(stored("decisions", 3, base))
			for name, text := range map[string]string{"decisions": test.decisions, "summary": test.summary} {
				if text != "" {
					if err := d.write(name, text); err != nil {
						t.Fatal(err)
					}
				}
			}
			err := d.finish(test.closed)
			if (err == nil) != (test.refuse == "") || err != nil && !strings.Contains(err.Error(), test.refuse) {
				t.Fatalf("%v, want %q", err, test.refuse)
			}
			done, v := d.outcome()
			if (done != nil) != (err == nil) || (v == verdictValid) != (err == nil) {
				t.Fatalf("outcome %+v, %v after %v", done, v, err)
			}
			if err != nil {
				return
			}
			if len(done.Closed) != 3 || done.Project != project {
				t.Errorf("closed: %+v", done)
			}
			if again, late := d.finish(test.closed), d.write("lessons", "x"); again != errFinished || late != errFinished {
				t.Errorf("after the end: %v, %v", again, late)
			}
		})
	}
}

func TestDeskStoresWhatChanged(t *testing.T) {
	d := deskOf(stored("decisions", 3, "- a [^1]"), stored("lessons", 1, "- l [^2]"))
	for name, text := range map[string]string{"decisions": "- a [^1][^6]", "lessons": "- l [^2]", "summary": "- s [^5]"} {
		if err := d.write(name, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.finish([]closing{{7, "discarded"}, {5, "applied"}, {6, "duplicate"}}); err != nil {
		t.Fatal(err)
	}
	done, _ := d.outcome()
	want := &session.Consolidation{Project: project,
		Documents: []session.Document{
			{Project: project, Name: "decisions", Version: 4, Text: "- a [^1][^6]", TextBytes: 12, Records: []session.RecordRef{{N: 1, ID: "rec_1"}, {N: 6, ID: "rec_6"}}, Reason: session.VersionConsolidated},
			{Project: project, Name: "summary", Version: 1, Text: "- s [^5]", TextBytes: 8, Records: []session.RecordRef{{N: 5, ID: "rec_5"}}, Reason: session.VersionConsolidated},
		},
		Closed: []session.ClosedRecord{{ID: "rec_5", Reason: "applied"}, {ID: "rec_6", Reason: "duplicate"}, {ID: "rec_7", Reason: "discarded"}},
	}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Error(diff)
	}
}

// TestNothingThatStandsIsLost plays any work at a desk. Whatever is finished closes
// each record of the set once, cites what it says is applied, and loses no record
// that a statement rested on which stood.
func TestNothingThatStandsIsLost(t *testing.T) {
	names := []string{"decisions", "preferences", "lessons", "open_questions", "summary"}
	statement := rapid.Custom(func(t *rapid.T) string {
		text := fmt.Sprintf("s [^%d]", rapid.IntRange(1, 7).Draw(t, "n"))
		if rapid.Bool().Draw(t, "struck") {
			text = "~~" + text + "~~"
		}
		return "- " + text
	})
	texts := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(statement, 1, 5).Draw(t, "statements"), "\n")
	})
	finished := 0
	rapid.Check(t, func(t *rapid.T) {
		var documents []session.Document
		before := map[int64]bool{} // records that something stood on
		for _, name := range names {
			if rapid.Bool().Draw(t, "exists") {
				d := stored(session.DocumentName(name), 1, texts.Draw(t, name))
				documents = append(documents, d)
				for _, n := range cited(unstruck(d.Text)) {
					if n <= 4 {
						before[n] = true
					}
				}
			}
		}
		d := deskOf(documents...)
		for range rapid.IntRange(0, 8).Draw(t, "changes") {
			_ = d.write(rapid.SampledFrom(names).Draw(t, "name"), texts.Draw(t, "text")) // what is refused changes nothing
		}
		var closed []closing
		for n := int64(5); n <= 7; n++ {
			closed = append(closed, closing{n, rapid.SampledFrom(session.CloseReasons()).Draw(t, "reason")})
		}
		if d.finish(closed) != nil {
			return
		}
		finished++
		done, _ := d.outcome()
		after := map[session.DocumentName]session.Document{}
		for _, document := range slices.Concat(documents, done.Documents) {
			after[document.Name] = document
		}
		standing, anywhere := map[session.RecordID]bool{}, map[session.RecordID]bool{}
		for _, document := range after {
			for _, ref := range document.Records {
				anywhere[ref.ID] = true
			}
			for _, n := range cited(unstruck(document.Text)) {
				standing[recordID(n)] = true
			}
		}
		for n := range before {
			if !anywhere[recordID(n)] {
				t.Fatalf("record %d is lost:\n%+v\n%+v", n, documents, done)
			}
		}
		for i, c := range done.Closed {
			if c.ID != recordID(int64(5+i)) || c.Reason == session.CloseApplied && !standing[c.ID] || c.Reason == session.CloseDiscarded && anywhere[c.ID] {
				t.Fatalf("record %d is closed as %+v", 5+i, c)
			}
		}
	})
	if finished == 0 {
		t.Error("no work was finished at all")
	}
}
