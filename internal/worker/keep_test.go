package worker

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
	"loadline/internal/tool"
	"loadline/internal/tool/tooltest"
)

// shelf is a Keeper in memory.
type shelf struct {
	mu   sync.Mutex // guards kept
	kept map[int64]string
	says session.KeptOutput // when it keeps nothing
}

func (s *shelf) Keep(_ session.ID, n int64, whole string) session.KeptOutput {
	if s.says.Error != "" {
		return s.says
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[n] = whole
	return session.KeptOutput{Bytes: int64(len(whole))}
}

func TestWholeOfACutOutputIsKept(t *testing.T) {
	long := strings.Repeat("日\x00", 500)
	for _, c := range []struct {
		name string
		out  session.Output
		want string // that is kept; empty for nothing
	}{
		{"fits", content("short"), ""},
		{"no content", session.Output{Summary: "s"}, ""},
		{"cut", content(long), session.Clean(long)},
		{"cut error", session.Output{Summary: "s", Failed: true, Content: &long}, session.Clean(long)},
		{"chosen from a longer one", session.Output{Summary: "s", Content: session.Text("head … tail"), Unseen: 5000, Full: long}, session.Clean(long)},
		{"chosen, and nothing left out", session.Output{Summary: "s", Content: session.Text("all"), Full: "all"}, ""},
		{"not collected", session.Output{Summary: "s", Content: session.Text("head"), Unseen: 5000}, "head"},
		{"nothing collected", session.Output{Summary: "s", Unseen: 5000}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &shelf{kept: map[int64]string{}}
			keep := func(whole string) session.KeptOutput { return s.Keep("", 3, whole) }
			got, _ := Settle(2, "Echo", c.out, 200, keep)
			if s.kept[3] != c.want {
				t.Errorf("kept are %d bytes %.40q, want %d bytes", len(s.kept[3]), s.kept[3], len(c.want))
			}
			want, _ := Settle(2, "Echo", c.out, 200, nil)
			if c.want != "" {
				want.KeptOutput = &session.KeptOutput{Bytes: int64(len(c.want))}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("keeping changed the result (-without +with):\n%s", diff)
			}
		})
	}
}

func TestResultsSayWhatWasKept(t *testing.T) {
	long := strings.Repeat("x", 5000)
	echo := tooltest.Returning("Echo", long)
	for _, refused := range []string{"", "quota", "io"} {
		w := newWorkbench(t, []tool.Tool{echo}, scripted{deltas: calls("Echo", "{}", "Echo", "{}")})
		s := &shelf{kept: map[int64]string{}, says: session.KeptOutput{Error: refused}}
		w.engine.Keeper = s
		if turn := w.run(t.Context()); turn.State != session.TurnCompleted {
			t.Errorf("%q: the turn is %s", refused, turn.State)
		}
		want := session.KeptOutput{Bytes: 5000}
		if refused != "" {
			want = session.KeptOutput{Error: refused}
		}
		for _, item := range w.log.items() {
			if r := item.ToolResult; r != nil && (r.KeptOutput == nil || *r.KeptOutput != want || refused == "" && s.kept[item.N] != long) {
				t.Errorf("%q: result %d has %+v and %d bytes are kept", refused, item.N, r.KeptOutput, len(s.kept[item.N]))
			}
		}
	}
}

// An interceptor that takes a secret out of what the model sees has taken it out of
// what is kept, also when it forgets Full.
func TestWhatAnInterceptorTookOutIsNotKept(t *testing.T) {
	secret := strings.Repeat("secret ", 500)
	chooses := tooltest.Func{Name: "Echo", RunFunc: func(context.Context, tool.Call) (session.Output, error) {
		return session.Output{Summary: "s", Content: session.Text(secret[:500]), Unseen: int64(len(secret) - 500), Full: secret}, nil
	}}
	for name, redact := range map[string]AfterTool{
		"replaces": func(_ context.Context, _ Call, out session.Output) session.Output {
			out.Content = session.Text(strings.ReplaceAll(*out.Content, "secret", "******"))
			return out
		},
		"changes in place": func(_ context.Context, _ Call, out session.Output) session.Output {
			*out.Content = strings.ReplaceAll(*out.Content, "secret", "******")
			return out
		},
		"replaces all": func(_ context.Context, _ Call, out session.Output) session.Output {
			out.Content = session.Text(strings.ReplaceAll(*out.Content, "secret", "******"))
			out.Full = strings.ReplaceAll(out.Full, "secret", "******")
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkbench(t, []tool.Tool{chooses}, scripted{deltas: calls("Echo", "{}")})
			s := &shelf{kept: map[int64]string{}}
			w.engine.Keeper, w.engine.After = s, []AfterTool{redact}
			w.run(t.Context())
			if kept := s.kept[3]; !strings.HasPrefix(kept, "******") || strings.Contains(kept, "secret") || name == "replaces all" && len(kept) != len(secret) {
				t.Errorf("kept are %d bytes: %.60q", len(kept), kept)
			}
		})
	}
}
