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
