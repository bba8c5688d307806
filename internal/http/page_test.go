package http

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"loadline/internal/session"
)

func TestPageParameters(t *testing.T) {
	const items = "/v1/sessions/" + string(testSession) + "/items"
	tests := []struct {
		target string
		code   code // "" for a page
	}{
		{"/v1/sessions?limit=1", ""},
		{"/v1/sessions?limit=200", ""},
		{"/v1/sessions?cursor=", ""},
		{"/v1/sessions?unknown=1", ""},
		{"/v1/sessions?limit=0", codeInvalidParameter},
		{"/v1/sessions?limit=201", codeInvalidParameter},
		{"/v1/sessions?limit=-1", codeInvalidParameter},
		{"/v1/sessions?limit=", codeInvalidParameter},
		{"/v1/sessions?limit=ten", codeInvalidParameter},
		{"/v1/sessions?limit=1.5", codeInvalidParameter},
		{"/v1/sessions?limit=99999999999999999999", codeInvalidParameter},
		{"/v1/sessions?limit=%zz", codeInvalidParameter},
		{"/v1/sessions?a=1;limit=5", codeInvalidParameter},
		{"/v1/sessions?cursor=abc", codeInvalidCursor},
		{"/v1/sessions?cursor=" + string(testTurn), codeInvalidCursor},
		{"/v1/sessions?cursor=" + string(testSession), ""},
		{turnsPath + "?cursor=" + string(testTurn), ""},
		{turnsPath + "?cursor=" + string(testSession), codeInvalidCursor},
		{items + "?cursor=0", ""},
		{items + "?cursor=9223372036854775807", ""},
		{items + "?cursor=9223372036854775808", codeInvalidCursor},
		{items + "?cursor=-1", codeInvalidCursor},
		{items + "?cursor=%2B1", codeInvalidCursor},
		{items + "?cursor=01", codeInvalidCursor},
		{items + "?cursor=1.5", codeInvalidCursor},
		{items + "?cursor=now", codeInvalidCursor},
	}
	s := newTestServer(t, &fake{})
	for _, test := range tests {
		w := ask(t, s, "GET", test.target, "")
		if test.code == "" {
			if w.Code != 200 || w.Body.String() != `{"data":[]}` {
				t.Errorf("GET %s: %d %s, want an empty page", test.target, w.Code, w.Body)
			}
			continue
		}
		wantProblem(t, w, test.code)
	}
}

func TestIDsThatNameNothingAreNotFound(t *testing.T) {
	s := newTestServer(t, &fake{})
	one := "/v1/sessions/"
	for _, id := range []string{"x", "ses_", "ses_0", string(testTurn), "SES_" + string(testSession[4:]), "ses_01940F3E7A8B7C11B2A64F1D0C9E5A21", "..", "%2e%2e", "a%2fb", "%00", string(testSession) + "0"} {
		for _, rest := range []string{"", "/turns", "/items", "/items/1", "/events"} {
			if w := ask(t, s, "GET", one+id+rest, ""); w.Code != 404 {
				t.Errorf("GET %s%s%s: status %d, want 404", one, id, rest, w.Code)
			}
		}
	}
	foreign := "ses_00000000000000000000000000000000"
	for _, path := range []string{"", "/turns"} {
		wantProblem(t, ask(t, s, "GET", one+foreign+path, ""), codeNotFound)
	}
	wantProblem(t, ask(t, s, "GET", one+foreign+"/events", "", "Accept: application/json"), codeNotFound)
	for _, n := range []string{"0", "-1", "1.0", "x", "01", "+1", "9223372036854775808"} {
		wantProblem(t, ask(t, s, "GET", sessionPath(testSession)+"/items/"+n, ""), codeNotFound)
	}
	for _, id := range []string{"x", "trn_", string(testSession)} {
		wantProblem(t, ask(t, s, "GET", turnsPath+"/"+id, ""), codeNotFound)
		wantProblem(t, ask(t, s, "POST", turnsPath+"/"+id+"/cancel", ""), codeNotFound)
	}
}

func TestProjectParameter(t *testing.T) {
	for _, path := range []string{"/v1/tools", "/v1/manifest"} {
		s := newTestServer(t, &fake{})
		if w := ask(t, s, "GET", path+"?project=default", ""); w.Code != 200 {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
		wantProblem(t, ask(t, s, "GET", path+"?project=nothing", ""), codeUnknownProject)
		wantProblem(t, ask(t, s, "GET", path+"?project=%", ""), codeInvalidParameter)
		wantProblem(t, ask(t, newTestServer(t, &fake{err: session.ErrProjectRequired}), "GET", path, ""), codeProjectRequired)
	}
}

// Pages joined together are the list, each entry once, however few entries the store
// gives at a time, and while entries are added at its end.
func TestPagesJoinUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := &fake{shortBy: rapid.IntRange(0, 5).Draw(rt, "shortBy")}
		grow := func(n int) {
			for range n {
				n := int64(len(f.items) + 1)
				f.items = append(f.items, session.Item{N: n, SessionID: testSession, TurnID: testTurn, At: 1, Kind: session.KindUserMessage, UserMessage: &session.UserMessage{Text: "a"}})
			}
		}
		grow(rapid.IntRange(0, 30).Draw(rt, "items"))
		s := newTestServer(t, f)
		limit := rapid.IntRange(1, 8).Draw(rt, "limit")
		var got, want []int64
		for cursor := ""; ; {
			w := ask(t, s, "GET", fmt.Sprintf("/v1/sessions/%s/items?limit=%d&cursor=%s", testSession, limit, url.QueryEscape(cursor)), "")
			var p page[session.Item]
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || len(p.Data) > limit {
				rt.Fatalf("page of %d: %v, %s", limit, err, w.Body)
			}
			for _, item := range p.Data {
				got = append(got, item.N)
			}
			if cursor = p.NextCursor; cursor == "" {
				break
			}
			if len(f.items) < 60 {
				grow(rapid.IntRange(0, 2).Draw(rt, "more"))
			}
		}
		for _, item := range f.items {
			want = append(want, item.N)
		}
		if !slices.Equal(got, want) {
			rt.Errorf("pages hold %v, want %v", got, want)
		}
	})
}

func TestSessionsPageWhileNewOnesAreMade(t *testing.T) {
	var old []session.ID
	f := &fake{}
	add := func() session.ID {
		id := session.NewID()
		f.sessions = slices.Insert(f.sessions, 0, session.Session{ID: id, Metadata: map[string]string{}, State: session.StateIdle, CreatedAt: 1, UpdatedAt: 1})
		return id
	}
	for range 25 {
		old = slices.Insert(old, 0, add())
	}
	s := newTestServer(t, f)
	var got []session.ID
	for cursor := ""; ; {
		var p page[session.Session]
		w := ask(t, s, "GET", "/v1/sessions?limit=10&cursor="+cursor, "")
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		for _, entry := range p.Data {
			got = append(got, entry.ID)
		}
		add()
		if cursor = p.NextCursor; cursor == "" {
			break
		}
	}
	if !slices.Equal(got, old) {
		t.Errorf("pages hold %v, want %v", got, old)
	}
}
