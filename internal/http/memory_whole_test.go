package http

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"loadline/internal/llm/llmtest"
	"loadline/internal/llm/openai"
	"loadline/internal/manifest"
	"loadline/internal/memory"
	"loadline/internal/session"
	"loadline/internal/worker"
)

// newExtractor makes the real one over the same model. It reads only on request, and
// its first failure makes a dead letter.
func (w *whole) newExtractor(registry *prometheus.Registry) *memory.Extractor {
	w.t.Helper()
	settings := manifest.Default()
	settings.Memory.DeadLetterAfter = 1
	x, err := memory.NewExtractor(w.t.Context(), memory.Config{
		Store: w.store, Host: w.host, MaxParallel: 1, Registry: registry, Log: zerolog.Nop(),
		Projects: map[string]memory.Project{"default": {Name: "default", Settings: settings.Memory, Limits: settings.Worker.ToolOutput, Engine: worker.Config{
			Provider:        openai.New(openai.Config{BaseURL: w.model.URL(), Name: "scripted", IdleTimeout: patience}),
			MaxCallsPerStep: 8, ToolTimeout: patience, Log: zerolog.Nop(),
			Metrics: worker.NewMetrics(prometheus.NewRegistry(), []string{memory.SubmitTool}, []string{"openai"}),
		}}},
	})
	must(w.t, err)
	w.t.Cleanup(x.Stop)
	return x
}

// extract asks for a pass, and waits for its notice.
func (w *whole) extract(path, target string, want session.Outcome, step llmtest.Step) {
	w.t.Helper()
	next := w.events(w.open("GET", path+"/events?after=now", ""))
	w.model.Add(step)
	var answer extracted
	w.do(202, &answer, "POST", target, "")
	// The pass before has told its end, and may not be over yet: then this one is next.
	if answer.Start != session.ExtractStarted && answer.Start != session.ExtractRunning {
		w.t.Errorf("%s answers %q", target, answer.Start)
	}
	all := until(w.t, next, func(ev received) bool { return ev.Type == session.EventMemoryExtract })
	if got := all[len(all)-1].Extract.Outcome; got != string(want) {
		w.t.Errorf("the pass ended %s, want %s", got, want)
	}
}

func submits(records string) llmtest.Step {
	return llmtest.Step{Calls: []llmtest.Call{{Tool: memory.SubmitTool, Arguments: `{"records":[` + records + `]}`}}}
}

const oneRecord = `{"kind":"preference","claim":"Reports are in 日本語.","why":"The readers are there.","evidence":[1],"stale_after":"2031-05-31"}`

func TestWholeExtractionIsAsTheContractSays(t *testing.T) {
	w := startWhole(t)
	path := w.newSession()
	extract, letters := path+"/extract", inProject+"/dead-letters"
	var answer extracted
	w.do(202, &answer, "POST", extract, "")
	if answer.Start != session.ExtractNothing {
		t.Errorf("without a history the answer is %q", answer.Start)
	}
	w.say(path, "hello", session.TurnCompleted, llmtest.Step{Text: []string{"hi"}})
	w.extract(path, extract, session.OutcomeStaged, submits(oneRecord))
	w.say(path, "and", session.TurnCompleted, llmtest.Step{Text: []string{"so"}})
	w.extract(path, extract, session.OutcomeNoSubmission, llmtest.Step{Text: []string{"I would rather not."}})

	var records page[session.Record]
	w.do(200, &records, "GET", inProject+"/records?state=open&kind=preference", "")
	if len(records.Data) != 1 || records.Data[0].Claim != "Reports are in 日本語." || records.Data[0].StaleAfter == 0 {
		t.Errorf("the records are %+v", records.Data)
	}
	var waiting page[session.DeadLetter]
	w.do(200, &waiting, "GET", letters, "")
	if len(waiting.Data) != 1 {
		t.Fatalf("the dead letters are %+v, want one", waiting.Data)
	}
	redrive := letters + "/" + string(waiting.Data[0].ID) + "/redrive"
	w.extract(path, redrive, session.OutcomeEmpty, submits(""))
	w.do(404, nil, "POST", redrive, "")
	var first, passes page[session.Pass]
	w.do(200, &first, "GET", path+"/passes?limit=2", "")
	w.do(200, &passes, "GET", path+"/passes?cursor="+first.NextCursor, "")
	if len(passes.Data) != 1 || passes.Data[0].Trigger != session.TriggerRedrive || passes.Data[0].DeadLetterID != waiting.Data[0].ID {
		t.Errorf("after the first two come the passes %+v", passes.Data)
	}
	w.do(204, nil, "DELETE", path, "")
	w.do(404, nil, "GET", path+"/passes", "")
	w.do(404, nil, "POST", extract, "")
	w.do(200, &records, "GET", inProject+"/records", "")
	if len(records.Data) != 1 {
		t.Errorf("the session has taken %d records with it", 1-len(records.Data))
	}
}

// consolidated stores one more version of a document, which closes all open records.
func (w *whole) consolidated(version int64, text string) {
	w.t.Helper()
	open, err := w.store.OpenRecords(w.t.Context(), "default", "", 10)
	must(w.t, err)
	c := session.Consolidation{Project: "default", Documents: []session.Document{
		{Name: session.DocumentPreferences, Version: version, Text: text, Reason: session.VersionConsolidated},
	}}
	for _, r := range open {
		c.Closed = append(c.Closed, session.ClosedRecord{ID: r.ID, Reason: session.CloseApplied})
		c.Documents[0].Records = append(c.Documents[0].Records, session.RecordRef{N: r.N, ID: r.ID})
	}
	must(w.t, w.store.Consolidate(w.t.Context(), c))
}

func TestWholeDocumentsAreAsTheContractSays(t *testing.T) {
	w := startWhole(t)
	const document = inProject + "/documents/preferences"
	w.do(404, nil, "GET", document, "")
	w.do(404, nil, "GET", document+"/versions", "")
	w.do(404, nil, "DELETE", document, "")
	w.do(404, nil, "POST", document+"/restore", `{"version":1}`)
	path := w.newSession()
	w.say(path, "hello", session.TurnCompleted, llmtest.Step{Text: []string{"hi"}})
	w.extract(path, path+"/extract", session.OutcomeStaged, submits(oneRecord))
	w.consolidated(1, "# Preferences\n\n- Reports are in 日本語. [^1]")
	w.consolidated(2, "# Preferences\n\n- ~~Reports are in 日本語. [^1]~~")

	var hits page[session.Hit]
	w.do(200, &hits, "GET", inProject+"/memory/search?q=%E6%97%A5%E6%9C%AC", "")
	if len(hits.Data) != 2 {
		t.Errorf("a part of a Japanese word finds %d hits, want the document and the record", len(hits.Data))
	}
	var restored session.Document
	location := w.do(201, &restored, "POST", document+"/restore", `{"version":1}`).Get("Location")
	w.do(200, &restored, "GET", location, "")
	if restored.Version != 3 || restored.RestoredFrom != 1 || restored.Text != "# Preferences\n\n- Reports are in 日本語. [^1]" {
		t.Errorf("restored is %+v", restored)
	}
	w.do(404, nil, "POST", document+"/restore", `{"version":4}`)
	w.do(404, nil, "GET", document+"?version=4", "")
	var newest, versions, all, none page[session.Document]
	w.do(200, &newest, "GET", document+"/versions?limit=1", "")
	w.do(200, &versions, "GET", document+"/versions?cursor="+newest.NextCursor, "")
	if len(versions.Data) != 2 || versions.Data[0].Version != 2 || versions.NextCursor != "" {
		t.Errorf("after the newest version come %+v", versions.Data)
	}
	w.do(200, &all, "GET", inProject+"/documents", "")
	w.do(204, nil, "DELETE", document, "")
	w.do(404, nil, "GET", document+"?version=1", "")
	w.do(200, &none, "GET", inProject+"/documents", "")
	if len(all.Data) != 1 || len(none.Data) != 0 {
		t.Errorf("before the deletion there are %+v, after it %+v", all.Data, none.Data)
	}
}
