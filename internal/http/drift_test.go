package http

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"loadline/internal/session"
)

func TestContractHasExactlyTheRoutes(t *testing.T) {
	var want, got []string
	for _, o := range openContract(t).operations() {
		want = append(want, o.method+" "+o.pattern)
	}
	s := newTestServer(t, &fake{})
	err := chi.Walk(s.handler.(chi.Routes), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method != http.MethodHead { // there wherever GET is, as the contract says in words
			got = append(got, method+" "+pattern)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-contract +router):\n%s", diff)
	}
}

func TestContractMarksOpenRoutes(t *testing.T) {
	c := openContract(t)
	for _, r := range newTestServer(t, &fake{}).routes() {
		node, _ := c.at(operation{r.method, r.pattern}.pointer())
		if _, overrides := node.(map[string]any)["security"]; overrides != r.open {
			t.Errorf("%s %s: the contract says open %v, the router %v", r.method, r.pattern, overrides, r.open)
		}
	}
}

// constants are the values of a package's constants of one type.
func constants(t *testing.T, file, typeName string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if named, ok := spec.Type.(*ast.Ident); ok && named.Name == typeName {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	slices.Sort(values)
	return values
}

func TestContractHasExactlyTheConstants(t *testing.T) {
	c := openContract(t)
	tests := []struct{ name, file, typeName, pointer string }{
		{"event types", "../session/event.go", "EventType", "/components/schemas/Event/discriminator/mapping"},
		{"item kinds", "../session/item.go", "ItemKind", "/components/schemas/Item/discriminator/mapping"},
		{"turn states", "../session/turn.go", "TurnState", "/components/schemas/TurnState/enum"},
		{"turn modes", "../session/turn.go", "Mode", "/components/schemas/Mode/enum"},
		{"turn errors", "../session/turn.go", "ErrorCode", "/components/schemas/TurnError/properties/code/enum"},
		{"session states", "../session/session.go", "State", "/components/schemas/Session/properties/state/enum"},
		{"extract outcomes", "../session/extract.go", "Outcome", "/components/schemas/ExtractOutcome/enum"},
		{"extract triggers", "../session/extract.go", "Trigger", "/components/schemas/ExtractTrigger/enum"},
		{"extract starts", "../session/extract.go", "ExtractStart", "/components/schemas/ExtractAnswer/properties/start/enum"},
		{"record kinds", "../session/record.go", "RecordKind", "/components/schemas/RecordKind/enum"},
		{"record states", "../session/record.go", "RecordState", "/components/schemas/RecordState/enum"},
		{"close reasons", "../session/record.go", "CloseReason", "/components/schemas/Record/properties/reason/enum"},
		{"document names", "../session/document.go", "DocumentName", "/components/schemas/DocumentName/enum"},
		{"version reasons", "../session/document.go", "VersionReason", "/components/schemas/Document/properties/reason/enum"},
		{"repair codes", "../session/import.go", "RepairCode", "/components/schemas/RepairCode/enum"},
		{"problem codes", "problem.go", "code", "/components/schemas/ProblemCode/enum"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var want []string
			node, _ := c.at(test.pointer)
			switch node := node.(type) {
			case map[string]any:
				want = slices.Collect(maps.Keys(node))
			case []any:
				for _, value := range node {
					want = append(want, value.(string))
				}
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, constants(t, test.file, test.typeName)); diff != "" || len(want) == 0 {
				t.Errorf("(-contract +code):\n%s", diff)
			}
		})
	}
}

func TestContractListsTheStatusOfEachCode(t *testing.T) {
	c := openContract(t)
	text, _ := c.at("/components/schemas/ProblemCode/description")
	var got []string
	for _, k := range kinds() {
		if row := fmt.Sprintf("| `%s` | %d |", k.code, k.status); !strings.Contains(text.(string), row) {
			t.Errorf("the contract lacks %s", row)
		}
		got = append(got, string(k.code))
	}
	slices.Sort(got)
	if diff := cmp.Diff(constants(t, "problem.go", "code"), got); diff != "" {
		t.Errorf("the status table (-codes +table):\n%s", diff)
	}
}

// The nouns have the fields that the contract gives them, and may leave out the same.
func TestContractHasExactlyTheFields(t *testing.T) {
	tests := []struct {
		schema string
		value  any
		head   []string // properties of the schema that are not fields of the value
	}{
		{"Session", session.Session{}, nil},
		{"Turn", session.Turn{}, nil},
		{"TurnError", session.TurnError{}, nil},
		{"Usage", session.Usage{}, nil},
		{"UserMessage", session.UserMessage{}, nil},
		{"AssistantMessage", session.AssistantMessage{}, nil},
		{"Reasoning", session.Reasoning{}, nil},
		{"ToolCall", session.ToolCall{}, nil},
		{"ToolResult", session.ToolResult{}, nil},
		{"Truncated", session.Truncated{}, nil},
		{"KeptOutput", session.KeptOutput{}, nil},
		{"Summary", session.Summary{}, nil},
		{"Diagnosis", session.Diagnosis{}, nil},
		{"Pulse", session.Pulse{}, nil},
		{"OpenCall", session.OpenCall{}, nil},
		{"NextRequest", session.NextRequest{}, nil},
		{"Contributor", session.Contributor{}, nil},
		{"MemoryLag", session.MemoryLag{}, nil},
		{"ItemDeltaEvent", session.Delta{}, []string{"type", "session_id", "turn_id", "at"}},
		{"StepRetryingEvent", session.Retry{}, []string{"type", "seq", "session_id", "turn_id", "at"}},
		{"StepRestartedEvent", session.Retry{}, []string{"type", "seq", "session_id", "turn_id", "at"}},
		{"StepCompletedEvent", session.Step{}, []string{"type", "seq", "session_id", "turn_id", "at"}},
		{"MemoryExtractEvent", session.Extract{}, []string{"type", "seq", "session_id", "at"}},
		{"StreamResetEvent", session.Reset{}, []string{"type", "session_id", "at"}},
		{"Document", session.Document{}, nil},
		{"RecordReference", session.RecordRef{}, nil},
		{"Record", session.Record{}, nil},
		{"Hit", session.Hit{}, nil},
		{"Pass", session.Pass{}, nil},
		{"DeadLetter", session.DeadLetter{}, nil},
		{"ExtractAnswer", extracted{}, nil},
		{"Ready", readiness{}, nil},
		{"ItemPage", page[session.Item]{}, nil},
		{"Problem", problem{}, nil},
		{"FieldError", fieldError{}, nil},
		{"Alive", status{}, nil},
	}
	c := openContract(t)
	for _, test := range tests {
		t.Run(test.schema, func(t *testing.T) {
			names, required := slices.Clone(test.head), slices.Clone(test.head)
			for _, field := range reflect.VisibleFields(reflect.TypeOf(test.value)) {
				name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
				if name == "-" {
					continue
				}
				names = append(names, name)
				if options == "" {
					required = append(required, name)
				}
			}
			node, _ := c.at("/components/schemas/" + test.schema)
			schema := node.(map[string]any)
			var wantRequired []string
			list, _ := schema["required"].([]any)
			for _, name := range list {
				wantRequired = append(wantRequired, name.(string))
			}
			slices.Sort(names)
			slices.Sort(required)
			slices.Sort(wantRequired)
			if diff := cmp.Diff(slices.Sorted(maps.Keys(schema["properties"].(map[string]any))), names); diff != "" {
				t.Errorf("fields (-contract +code):\n%s", diff)
			}
			if diff := cmp.Diff(wantRequired, required); diff != "" {
				t.Errorf("fields that are always there (-contract +code):\n%s", diff)
			}
		})
	}
}

// Durable events have a seq, of the others none does; and each belongs to a turn
// unless its schema says otherwise.
func TestContractKnowsWhichEventsAreDurable(t *testing.T) {
	c := openContract(t)
	for _, kind := range constants(t, "../session/event.go", "EventType") {
		ref, _ := c.at("/components/schemas/Event/discriminator/mapping/" + kind)
		schema, _ := c.at(strings.TrimPrefix(ref.(string), "#"))
		required := schema.(map[string]any)["required"].([]any)
		if got, want := slices.Contains(required, any("seq")), session.EventType(kind).Durable(); got != want {
			t.Errorf("%s: the contract says durable %v, the code %v", kind, got, want)
		}
	}
}
