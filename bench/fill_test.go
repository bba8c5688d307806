package main

import (
	"testing"

	"github.com/rs/zerolog"

	"loadline/internal/session"
	"loadline/internal/store"
)

func TestFillStoresEndedTurns(t *testing.T) {
	folder := t.TempDir()
	ids, err := fill(t.Context(), folder, 3, 6*itemsPerTurn)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), folder, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if open, err := s.Unfinished(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("unfinished sessions %v, %v, want none", open, err)
	}
	for _, id := range ids {
		items, err := s.History(t.Context(), id)
		if err != nil || len(items) != 6*itemsPerTurn {
			t.Fatalf("history of %d items, %v, want %d", len(items), err, 6*itemsPerTurn)
		}
		for i, item := range items {
			if item.N != int64(i+1) {
				t.Fatalf("item %d has number %d", i+1, item.N)
			}
		}
		turns, err := s.Turns(t.Context(), id, "", 50)
		if err != nil || len(turns) != 6 || turns[5].State != session.TurnCompleted {
			t.Errorf("turns %+v, %v, want 6 completed ones", turns, err)
		}
	}
}
