package main

import (
	"bufio"
	"context"
	"io"

	"loadline/internal/host"
	"loadline/internal/session"
	"loadline/internal/store"
	"loadline/internal/transfer"
)

const (
	exportPageItems = 200
	exportBuffer    = 64 << 10 // bytes
	// parallelImports bounds how many documents are taken apart at once: each takes
	// a few times its size of memory.
	parallelImports = 2
)

// transfers carries sessions in and out.
type transfers struct {
	host     *host.Host
	store    *store.Store
	projects *projects
	places   chan struct{} // holds a token for each import that goes on
}

func newTransfers(h *host.Host, db *store.Store, p *projects) transfers {
	return transfers{h, db, p, make(chan struct{}, parallelImports)}
}

// Export writes a session as it is now; what comes later is left out.
func (t transfers) Export(ctx context.Context, id session.ID, w io.Writer) error {
	s, err := t.store.Session(ctx, id)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, exportBuffer)
	err = transfer.Write(out, s, func(after int64) ([]session.Item, error) {
		return t.store.Items(ctx, id, after, exportPageItems)
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// Import makes a session out of a document. Its results are cut to the limits of
// the project that it comes to.
func (t transfers) Import(ctx context.Context, document []byte, project, format, title string) (session.Imported, error) {
	project, err := t.projects.choose(project)
	if err != nil {
		return session.Imported{}, err
	}
	select {
	case t.places <- struct{}{}:
		defer func() { <-t.places }()
	case <-ctx.Done():
		return session.Imported{}, context.Cause(ctx)
	}
	limits := t.projects.manifest.Projects[project].Worker.ToolOutput
	read, err := transfer.Read(document, transfer.Format(format), limits.CallLimit)
	if err != nil {
		return session.Imported{}, err
	}
	if title == "" {
		title = read.Title
	}
	made, err := t.host.Import(ctx, project, title, read.Metadata, read.Items)
	return session.Imported{
		Session: made, Format: string(read.Format), Items: len(read.Items), Repairs: read.Repairs, RepairsTotal: read.RepairsTotal,
	}, err
}
