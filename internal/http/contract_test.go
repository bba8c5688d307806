package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"loadline"
	"loadline/internal/session"
)

// contract is openapi.yaml, made strict: an object with properties may have no others.
type contract struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
	mu       sync.Mutex // guards the compiler and schemas
	schemas  map[string]*jsonschema.Schema
}

var theContract = sync.OnceValues(readContract)

func readContract() (*contract, error) {
	var tree any
	if err := yaml.Unmarshal(loadline.Contract(), &tree); err != nil {
		return nil, err
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	closeObjects(doc)
	c := &contract{doc: doc.(map[string]any), compiler: jsonschema.NewCompiler(), schemas: map[string]*jsonschema.Schema{}}
	c.compiler.AssertFormat()
	return c, c.compiler.AddResource("openapi.json", doc)
}

func closeObjects(node any) {
	switch node := node.(type) {
	case map[string]any:
		if _, ok := node["properties"].(map[string]any); ok && node["type"] == "object" && node["additionalProperties"] == nil {
			node["additionalProperties"] = false
		}
		for _, child := range node {
			closeObjects(child)
		}
	case []any:
		for _, child := range node {
			closeObjects(child)
		}
	}
}

func openContract(t testing.TB) *contract {
	t.Helper()
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// at finds what a JSON pointer names, and follows a reference there.
func (c *contract) at(pointer string) (value any, place string) {
	value = any(c.doc)
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		children, _ := value.(map[string]any)
		if value = children[step]; value == nil {
			return nil, pointer
		}
	}
	if node, ok := value.(map[string]any); ok {
		if ref, ok := node["$ref"].(string); ok {
			return c.at(strings.TrimPrefix(ref, "#"))
		}
	}
	return value, pointer
}

func escape(s string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(s) }

// validate checks JSON against the schema at pointer. Of a choice it checks the part
// that the discriminator names.
func (c *contract) validate(pointer string, text []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%.200q is no JSON: %w", text, err)
	}
	return c.validateValue(pointer, value)
}

func (c *contract) validateValue(pointer string, value any) error {
	node, place := c.at(pointer)
	schema, _ := node.(map[string]any)
	if choice, ok := schema["discriminator"].(map[string]any); ok {
		object, _ := value.(map[string]any)
		kind, _ := object[choice["propertyName"].(string)].(string)
		ref, ok := choice["mapping"].(map[string]any)[kind].(string)
		if !ok {
			return fmt.Errorf("%s knows no %q", place, kind)
		}
		place = strings.TrimPrefix(ref, "#")
	}
	c.mu.Lock()
	compiled := c.schemas[place]
	if compiled == nil {
		var err error
		if compiled, err = c.compiler.Compile("openapi.json#" + place); err != nil {
			c.mu.Unlock()
			return err
		}
		c.schemas[place] = compiled
	}
	c.mu.Unlock()
	return compiled.Validate(value)
}

// operation is a method of a path.
type operation struct{ method, pattern string }

func (o operation) pointer() string {
	return "/paths/" + escape(o.pattern) + "/" + strings.ToLower(o.method)
}

func (c *contract) operations() []operation {
	var all []operation
	for pattern, item := range c.doc["paths"].(map[string]any) {
		for method := range item.(map[string]any) {
			if method != "parameters" {
				all = append(all, operation{strings.ToUpper(method), pattern})
			}
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.pattern+a.method, b.pattern+b.method) })
	return all
}

// find is the operation that a request is one of.
func (c *contract) find(method, path string) (operation, bool) {
	steps := strings.Split(path, "/")
	for _, o := range c.operations() {
		same := func(pattern, step string) bool {
			return pattern == step || pattern != "" && pattern[0] == '{' && step != ""
		}
		if o.method == method && slices.EqualFunc(strings.Split(o.pattern, "/"), steps, same) {
			return o, true
		}
	}
	return operation{}, false
}

// check compares an answer with the contract: it must know the status, the media
// type, the headers that it promises and the form of the body.
func (c *contract) check(method, path string, status int, h http.Header, body []byte) error {
	o, known := c.find(method, path)
	if !known {
		if status < 400 {
			return nil // HEAD and OPTIONS
		}
		return c.validate("/components/schemas/Problem", body)
	}
	response, place := c.at(o.pointer() + "/responses/" + strconv.Itoa(status))
	if response == nil {
		return fmt.Errorf("%s %s knows no answer %d: %.200s", method, o.pattern, status, body)
	}
	headers, _ := response.(map[string]any)["headers"].(map[string]any)
	for name := range headers {
		header, _ := c.at(place + "/headers/" + name)
		if required, _ := header.(map[string]any)["required"].(bool); required && h.Get(name) == "" {
			return fmt.Errorf("%s %s answers %d without %s", method, o.pattern, status, name)
		}
	}
	mediaType, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	content, contentPlace := c.at(place + "/content/" + escape(mediaType))
	if content == nil {
		if status == http.StatusNoContent && len(body) == 0 {
			return nil
		}
		return fmt.Errorf("%s %s answers %d as %q, which the contract does not know", method, o.pattern, status, mediaType)
	}
	switch mediaType {
	case "application/json", "application/problem+json":
		if err := c.validate(contentPlace+"/schema", body); err != nil {
			return fmt.Errorf("%s %s answers %d %.300s: %w", method, o.pattern, status, body, err)
		}
	case eventStream:
		return c.checkStream(body)
	}
	return nil
}

// checkStream checks the events of a stream, whole ones alone.
func (c *contract) checkStream(body []byte) error {
	for block := range strings.SplitSeq(string(body), "\n\n") {
		_, line, found := strings.Cut(block, "\ndata: ")
		if !found {
			continue
		}
		if err := c.validate("/components/schemas/Event", []byte(line)); err != nil {
			return fmt.Errorf("event %.300s: %w", line, err)
		}
	}
	return nil
}

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

func TestContractExamplesFitTheirSchemas(t *testing.T) {
	c := openContract(t)
	checked := 0
	checkExample := func(place string, example any) {
		checked++
		if err := c.validateValue(place+"/schema", example); err != nil {
			t.Errorf("example of %s: %v", place, err)
		}
	}
	var walk func(place string, node any)
	walk = func(place string, node any) {
		object, ok := node.(map[string]any)
		if !ok {
			return
		}
		if object["schema"] != nil && object["example"] != nil {
			checkExample(place, object["example"])
		}
		if named, ok := object["examples"].(map[string]any); ok && object["schema"] != nil {
			for _, entry := range named {
				checkExample(place, entry.(map[string]any)["value"])
			}
		}
		for name, child := range object {
			walk(place+"/"+escape(name), child)
		}
	}
	walk("", c.doc)
	events, _ := c.at("/components/schemas/Event/discriminator/mapping")
	for kind, ref := range events.(map[string]any) {
		place := strings.TrimPrefix(ref.(string), "#")
		schema, _ := c.at(place)
		for _, example := range schema.(map[string]any)["examples"].([]any) {
			checked++
			if err := c.validateValue("/components/schemas/Event", example); err != nil {
				t.Errorf("example of %s: %v", kind, err)
			}
		}
	}
	for _, o := range c.operations() {
		responses, _ := c.at(o.pointer() + "/responses")
		for status := range responses.(map[string]any) {
			response, place := c.at(o.pointer() + "/responses/" + status)
			content, _ := response.(map[string]any)["content"].(map[string]any)
			for mediaType, entry := range content {
				if entry := entry.(map[string]any); entry["example"] == nil && entry["examples"] == nil {
					t.Errorf("%s of %s has no example", mediaType, place)
				}
			}
		}
	}
	if checked < 60 {
		t.Errorf("only %d examples were found", checked)
	}
}

// Each refusal that the contract names for an operation can happen there, and each
// that the middleware makes is named.
func TestContractNamesTheRefusals(t *testing.T) {
	c := openContract(t)
	withKeys := func(c *Config) { c.Settings.Keys = map[string]string{"anna": digest("key")} }
	small := func(c *Config) { c.Settings.BodyMaxBytes = 1 }
	unready := func(c *Config) { c.Ready = func() error { return session.ErrStorage } }
	tests := []struct {
		status  string
		err     error
		query   string
		body    string
		header  string
		change  func(*Config)
		general bool // made by what is before the handlers: never unnamed
	}{
		{status: "400", query: "?limit=0&after=x&project=%", body: `{`},
		{status: "401", change: withKeys, general: true},
		{status: "403", header: "Origin: http://evil.test", general: true},
		{status: "404", err: session.ErrNotFound},
		{status: "409", err: session.ErrBusy},
		{status: "413", change: small, general: true},
		{status: "415", header: "Content-Type: text/plain", general: true},
		{status: "421", header: "Host: evil.test", general: true},
		{status: "422", err: session.ErrUnknownProject},
		{status: "429", err: session.ErrQueueFull},
		{status: "500", err: errDisk},
		{status: "503", err: session.ErrStorage, change: unready},
	}
	for _, o := range c.operations() {
		responses, _ := c.at(o.pointer() + "/responses")
		for _, test := range tests {
			if o.pattern == "/metrics" && test.status == "500" {
				continue // only by a panic, which has its own test
			}
			body := ""
			if request, _ := c.at(o.pointer() + "/requestBody"); request != nil {
				body = map[string]string{"/v1/sessions": `{}`, "/v1/sessions/{session_id}": `{}`, "/v1/sessions/{session_id}/turns": `{"input":"a"}`}[o.pattern]
				if test.body != "" {
					body = test.body
				}
			}
			f := &fake{err: test.err, sub: ended(), items: make([]session.Item, 1)}
			s := newTestServer(t, f, func(c *Config) {
				if test.change != nil {
					test.change(c)
				}
			})
			var headers []string
			if test.header != "" && !(body == "" && strings.HasPrefix(test.header, "Content-Type")) {
				headers = append(headers, test.header)
			}
			path := fill(o.pattern)
			got := strconv.Itoa(askUnchecked(s, o.method, path+test.query, body, headers...).Code)
			named := responses.(map[string]any)[test.status] != nil
			if named && got != test.status {
				t.Errorf("%s %s answers %s, the contract names %s", o.method, o.pattern, got, test.status)
			}
			if !named && test.general && got == test.status {
				t.Errorf("%s %s answers %s, which the contract does not name", o.method, o.pattern, got)
			}
		}
	}
}
