package http

import (
	"cmp"
	"context"
	"strings"

	"loadline/internal/session"
)

const (
	testLetter = session.DeadLetterID("ded_01940f4c0b7d71e2a3f4c5d6e7f80912")
	testRecord = session.RecordID("rec_5b1d0c2f7a9e4e6d8c3b1a0f9e8d7c6b")
)

// remembered is what a fake keeps of the memory of its project.
type remembered struct {
	versions []session.Document // of preferences, newest first
	records  []session.Record
	letters  []session.DeadLetter
	passes   []session.Pass
	hits     []session.Hit
	start    session.ExtractStart

	wishes []string // changes that were asked for
}

func (f *fake) Has(project string) bool { return project == "default" }

func (f *fake) Documents(context.Context, string) ([]session.Document, error) {
	return f.versions[:min(1, len(f.versions))], f.err
}

func (f *fake) Document(_ context.Context, _ string, name session.DocumentName, version int64) (session.Document, error) {
	for _, d := range f.versions {
		if d.Name == name && (version == 0 || d.Version == version) {
			d.Text = strings.Repeat("a", d.TextBytes)
			return d, f.err
		}
	}
	return session.Document{}, orNotFound(f.err)
}

func (f *fake) DocumentVersions(_ context.Context, _ string, name session.DocumentName, before int64, limit int) ([]session.Document, error) {
	found, err := cutList(f, f.versions, limit, func(d session.Document) bool {
		return d.Name == name && (before == 0 || d.Version < before)
	})
	if len(found) == 0 && err == nil {
		_, err = f.Document(context.Background(), "", name, 0)
	}
	return found, err
}

func (f *fake) RestoreDocument(ctx context.Context, project string, name session.DocumentName, version int64) (session.Document, error) {
	f.wish("restore " + string(name))
	d, err := f.Document(ctx, project, name, version)
	d.Version, d.Reason, d.RestoredFrom = int64(len(f.versions)+1), session.VersionRestored, version
	return d, err
}

func (f *fake) DeleteDocument(ctx context.Context, project string, name session.DocumentName) error {
	f.wish("delete " + string(name))
	_, err := f.Document(ctx, project, name, 0)
	return err
}

func (f *fake) Records(_ context.Context, _ string, state session.RecordState, kind session.RecordKind, after session.RecordID, limit int) ([]session.Record, error) {
	return cutList(f, f.records, limit, func(r session.Record) bool {
		return r.ID > after && (state == "" || r.State == state) && (kind == "" || r.Kind == kind)
	})
}

func (f *fake) SearchMemory(_ context.Context, _, query string, limit int) ([]session.Hit, error) {
	if f.err != nil {
		return nil, f.err
	}
	if blank(query) || len([]rune(query)) > session.MaxQueryRunes {
		return nil, session.ErrQuery
	}
	return f.hits[:min(limit, len(f.hits))], nil
}

func (f *fake) Passes(_ context.Context, _ session.ID, after session.PassID, limit int) ([]session.Pass, error) {
	return cutList(f, f.passes, limit, func(p session.Pass) bool { return p.ID > after })
}

func (f *fake) DeadLetter(_ context.Context, id session.DeadLetterID) (session.DeadLetter, error) {
	for _, l := range f.letters {
		if l.ID == id {
			return l, f.err
		}
	}
	return session.DeadLetter{}, orNotFound(f.err)
}

func (f *fake) DeadLetters(_ context.Context, project string, after session.DeadLetterID, limit int) ([]session.DeadLetter, error) {
	return cutList(f, f.letters, limit, func(l session.DeadLetter) bool { return l.Project == project && l.ID > after })
}

func (f *fake) Extract(_ context.Context, id session.ID) (session.ExtractStart, error) {
	f.wish("extract " + string(id))
	return cmp.Or(f.start, session.ExtractStarted), f.err
}

func (f *fake) Redrive(_ context.Context, id session.DeadLetterID) (session.ExtractStart, error) {
	f.wish("redrive " + string(id))
	return cmp.Or(f.start, session.ExtractStarted), f.err
}

func (f *fake) wish(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wishes = append(f.wishes, what)
}

func orNotFound(err error) error {
	if err == nil {
		return session.ErrNotFound
	}
	return err
}
