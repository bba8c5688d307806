package worker

import (
	"strings"
	"testing"

	"loadline/internal/session"
)

func TestRecallGoesBehindTheInstructions(t *testing.T) {
	tests := []struct{ name, instructions, recall, want string }{
		{"none", "Be brief.", "", "Be brief."},
		{"blank", "Be brief.", " \n", "Be brief."},
		{"both", "Be brief.", "> Ada likes tabs.", "Be brief.\n\n> Ada likes tabs."},
		{"recall alone", "", "> Ada likes tabs.", "> Ada likes tabs."},
		{"too long", "Be brief.", strings.Repeat("あ", 100), "Be brief.\n\n" + strings.Repeat("あ", 49) + "\n\n[truncated: 153 bytes dropped, refine your query]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkbench(t, nil, scripted{deltas: calls("Nothing", "{}")})
			w.engine.Instructions, w.engine.RecallMaxBytes, w.history.Recall = test.instructions, 200, test.recall
			if ended := w.run(t.Context()); ended.State != session.TurnCompleted {
				t.Fatal(ended)
			}
			if len(w.model.requests) != 2 {
				t.Fatalf("%d requests, want 2", len(w.model.requests))
			}
			for i, r := range w.model.requests {
				if r.System != test.want {
					t.Errorf("request %d: system %q, want %q", i, r.System, test.want)
				}
			}
		})
	}
}
