package http

import (
	"strings"
	"testing"
)

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
	checkBodyExamples(t, c)
	checked += checkEventExamples(t, c)
	if checked < 60 {
		t.Errorf("only %d examples were found", checked)
	}
}

// checkBodyExamples wants an example of whatever is sent and answered.
func checkBodyExamples(t *testing.T, c *contract) {
	t.Helper()
	for _, o := range c.operations() {
		for place, content := range bodies(c, o) {
			for mediaType, entry := range content {
				if entry := entry.(map[string]any); entry["example"] == nil && entry["examples"] == nil {
					t.Errorf("%s of %s has no example", mediaType, place)
				}
			}
		}
	}
}

// bodies finds what is sent and answered, by media type, at each place of an operation.
func bodies(c *contract, o operation) map[string]map[string]any {
	found := map[string]map[string]any{}
	add := func(pointer string) {
		if node, place := c.at(pointer); node != nil {
			found[place], _ = node.(map[string]any)["content"].(map[string]any)
		}
	}
	add(o.pointer() + "/requestBody")
	responses, _ := c.at(o.pointer() + "/responses")
	for status := range responses.(map[string]any) {
		add(o.pointer() + "/responses/" + status)
	}
	return found
}

// checkEventExamples counts the examples of events: each type has some, of its own.
func checkEventExamples(t *testing.T, c *contract) (checked int) {
	t.Helper()
	events, _ := c.at("/components/schemas/Event/discriminator/mapping")
	for kind, ref := range events.(map[string]any) {
		schema, _ := c.at(strings.TrimPrefix(ref.(string), "#"))
		examples, _ := schema.(map[string]any)["examples"].([]any)
		own := 0
		for _, example := range examples {
			checked++
			if example.(map[string]any)["type"] == kind {
				own++
			}
			if err := c.validateValue("/components/schemas/Event", example); err != nil {
				t.Errorf("example of %s: %v", kind, err)
			}
		}
		if own == 0 {
			t.Errorf("%s has no example", kind)
		}
	}
	return checked
}
