package memory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"loadline/internal/session"
	"loadline/internal/tool"
)

// desk is what one consolidation works at: copies of all documents of the project,
// and the set of records that it folds into them. Nothing of it is stored before it
// is finished, and then all of it.
type desk struct {
	project string
	set     []session.Record
	mask    func(string) string
	done    func() // called when it is finished

	mu       sync.Mutex // guards the fields below
	drafts   map[session.DocumentName]*draft
	known    map[int64]session.RecordID // records that may be cited
	verdict  verdict                    // of the last attempt to finish
	finished *session.Consolidation     // nil until then
}

// draft is a document that is worked on.
type draft struct {
	base session.Document // as it is stored; version 0: not yet
	text string
}

func newDesk(project string, documents []session.Document, set []session.Record, mask func(string) string, done func()) *desk {
	d := &desk{project: project, set: set, mask: mask, done: done,
		drafts: map[session.DocumentName]*draft{}, known: map[int64]session.RecordID{}}
	for _, name := range session.DocumentNames() {
		d.drafts[name] = &draft{base: session.Document{Name: name}}
	}
	for _, document := range documents {
		d.drafts[document.Name] = &draft{base: document, text: document.Text}
		for _, ref := range document.Records {
			d.known[ref.N] = ref.ID
		}
	}
	for _, r := range set {
		d.known[r.N] = r.ID
	}
	return d
}

var errFinished = errors.New("the work is finished already")

// draft finds the draft of a document. The caller holds mu.
func (d *desk) draft(name string) (*draft, error) {
	if found, ok := d.drafts[session.DocumentName(name)]; ok {
		return found, nil
	}
	return nil, fmt.Errorf("%w: there is no document %.40q; the documents are %v", tool.ErrArguments, name, session.DocumentNames())
}

// read returns the text of a document as it is by now.
func (d *desk) read(name string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, err := d.draft(name)
	if err != nil {
		return "", err
	}
	return found.text, nil
}

// write replaces a document's text.
func (d *desk) write(name, text string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.replace(name, text)
}

// edit replaces the one occurrence of a part of a document's text.
func (d *desk) edit(name, old, replacement string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	found, err := d.draft(name)
	if err != nil {
		return err
	}
	switch n := strings.Count(found.text, old); {
	case old == "":
		return fmt.Errorf("%w: old is empty; a whole text is written with %s", tool.ErrArguments, writeTool)
	case n == 0:
		return errors.New("old is not in the document; read it and copy the text exactly")
	case n > 1:
		return fmt.Errorf("old is in the document %d times; give more of the text around it", n)
	}
	return d.replace(name, strings.Replace(found.text, old, replacement, 1))
}

// replace takes over the text of a document, when it can stand. The caller holds mu.
func (d *desk) replace(name, text string) error {
	found, err := d.draft(name)
	if err != nil {
		return err
	}
	text = strings.TrimSpace(d.mask(session.Clean(text)))
	switch {
	case d.finished != nil:
		return errFinished
	case text == "" && found.base.Version > 0:
		return errors.New("a document that exists cannot be made empty; strike what no longer holds: ~~so~~")
	case len(text) > session.MaxDocumentBytes:
		return fmt.Errorf("the document would have %s bytes, at most %s are allowed; say it shorter, and leave out what was struck in an earlier version",
			tool.Grouped(int64(len(text))), tool.Grouped(session.MaxDocumentBytes))
	}
	for _, n := range cited(text) {
		if _, ok := d.known[n]; !ok {
			return fmt.Errorf("[^%d] is no record of this work or of a document", n)
		}
	}
	found.text = text
	return nil
}

// closing is what is done with one record.
type closing struct {
	N      int64               `json:"record"`
	Reason session.CloseReason `json:"reason"`
}

// finish closes the records of the set and ends the work. It refuses, and changes
// nothing, unless each record of the set has a reason that fits the documents, and
// nothing that the documents said is lost.
func (d *desk) finish(closed []closing) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.finished != nil {
		return errFinished
	}
	d.verdict = verdictInvalid
	reasons, err := d.reasons(closed)
	if err != nil {
		return err
	}
	c := d.citations()
	for _, r := range d.set {
		if err := c.check(r.N, reasons[r.N]); err != nil {
			return err
		}
	}
	if err := d.checkLost(c); err != nil {
		return err
	}
	d.verdict = verdictValid
	d.finished = d.result(reasons)
	d.done()
	return nil
}

// reasons reads what is done with the records of the set. The caller holds mu.
func (d *desk) reasons(closed []closing) (map[int64]session.CloseReason, error) {
	reasons := map[int64]session.CloseReason{}
	for _, c := range closed {
		_, twice := reasons[c.N]
		switch {
		case !slices.ContainsFunc(d.set, func(r session.Record) bool { return r.N == c.N }):
			return nil, fmt.Errorf("record %d is not among those to be closed", c.N)
		case twice:
			return nil, fmt.Errorf("record %d is closed twice", c.N)
		case !slices.Contains(session.CloseReasons(), c.Reason):
			return nil, fmt.Errorf("the reason of record %d is %.40q, it must be one of %v", c.N, c.Reason, session.CloseReasons())
		}
		reasons[c.N] = c.Reason
	}
	return reasons, nil
}

// citations is which records the drafts cite: in statements that stand, and in any.
type citations struct{ standing, any map[int64]bool }

// citations counts them. The caller holds mu.
func (d *desk) citations() citations {
	c := citations{map[int64]bool{}, map[int64]bool{}}
	for _, draft := range d.drafts {
		for _, n := range cited(draft.text) {
			c.any[n] = true
		}
		for _, n := range cited(unstruck(draft.text)) {
			c.standing[n] = true
		}
	}
	return c
}

// check refuses a reason that does not fit what the documents say.
func (c citations) check(n int64, reason session.CloseReason) error {
	switch {
	case reason == "":
		return fmt.Errorf("record %d is not closed; give each record of the set a reason", n)
	case reason == session.CloseApplied && !c.standing[n]:
		return fmt.Errorf("record %d is applied, but no document cites it: end the statement that rests on it with [^%d]", n, n)
	case reason == session.CloseSuperseded && c.standing[n]:
		return fmt.Errorf("record %d is superseded, but a document cites it in a statement that is not struck", n)
	case reason == session.CloseDiscarded && c.any[n]:
		return fmt.Errorf("record %d is discarded, but a document cites it", n)
	}
	return nil
}

// checkLost refuses when a record that a stored document cites, in a statement that
// stands there, is cited in none of the drafts. A statement is struck first, in one
// version, and may be left out of a later one.
func (d *desk) checkLost(c citations) error {
	for _, name := range session.DocumentNames() {
		for _, n := range cited(unstruck(d.drafts[name].base.Text)) {
			if _, known := d.known[n]; known && !c.any[n] {
				return fmt.Errorf("document %s has lost [^%d]; what no longer holds is struck, ~~so [^%d]~~, not left out", name, n, n)
			}
		}
	}
	return nil
}

// result is what is to be stored. The caller holds mu.
func (d *desk) result(reasons map[int64]session.CloseReason) *session.Consolidation {
	done := &session.Consolidation{Project: d.project}
	for _, name := range session.DocumentNames() {
		if draft := d.drafts[name]; draft.text != draft.base.Text {
			done.Documents = append(done.Documents, session.Document{
				Project: d.project, Name: name, Version: draft.base.Version + 1, Text: draft.text, TextBytes: len(draft.text),
				Records: refs(draft.text, d.known), Reason: session.VersionConsolidated,
			})
		}
	}
	for _, r := range d.set {
		done.Closed = append(done.Closed, session.ClosedRecord{ID: r.ID, Reason: reasons[r.N]})
	}
	return done
}

// outcome is what came of the work.
func (d *desk) outcome() (*session.Consolidation, verdict) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.finished, d.verdict
}
