package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"

	"loadline"
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
		if (status == http.StatusNoContent || status == http.StatusNotModified) && len(body) == 0 {
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
