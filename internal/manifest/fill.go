package manifest

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// filler writes a tree into the structs of the manifest and notes whatever does
// not fit them. A field keeps its value when its key is absent or wrong.
type filler struct {
	problems *problems
	layer    bool // a project's: keys of the whole server are unknown in it
}

// fill writes n into a value, which the field with this tag holds.
func (f *filler) fill(into reflect.Value, n *node, tag reflect.StructTag, path string) {
	if into.Type() == reflect.TypeFor[Duration]() {
		f.fillDuration(into, n, tag, path)
		return
	}
	switch into.Kind() {
	case reflect.Struct:
		f.fillStruct(into, n, path)
	case reflect.Map:
		f.fillMap(into, n, tag, path)
	case reflect.Slice:
		f.fillList(into, n, tag, path)
	case reflect.Int, reflect.Int64:
		f.fillInteger(into, n, tag, path)
	case reflect.Bool:
		if f.is(n, kindBoolean, path) {
			into.SetBool(n.yes)
		}
	case reflect.String:
		f.fillString(into, n, tag, path)
	default:
		panic("a manifest has no field of type " + into.Type().String())
	}
}

// is tells whether a node has the kind that its key asks for.
func (f *filler) is(n *node, want kind, path string) bool {
	switch {
	case n.kind == want:
		return true
	case n.kind == kindHuge:
		f.problems.add(n, path, "is out of range: integers have at most 64 bits")
	default:
		f.problems.add(n, path, fmt.Sprintf("must be %s, not %s", want, n.kind))
	}
	return false
}

func (f *filler) fillStruct(into reflect.Value, n *node, path string) {
	if !f.is(n, kindTable, path) {
		return
	}
	known := fields(into, f.layer)
	for key, child := range n.table {
		field, ok := known[key]
		if !ok {
			f.problems.add(child, join(path, key), f.unknown(into, key, path))
			continue
		}
		f.fill(field.value, child, field.tag, join(path, key))
	}
}

func (f *filler) fillMap(into reflect.Value, n *node, tag reflect.StructTag, path string) {
	if !f.is(n, kindTable, path) || len(n.table) == 0 {
		return
	}
	if into.IsNil() {
		into.Set(reflect.MakeMap(into.Type()))
	}
	for key, child := range n.table {
		if err := checkText(tag.Get("keys"), key); err != nil {
			f.problems.add(child, join(path, key), "its name "+err.Error())
			continue
		}
		value := reflect.New(into.Type().Elem()).Elem()
		value.Set(element(value.Type()))
		if old := into.MapIndex(reflect.ValueOf(key)); old.IsValid() {
			value.Set(old)
		}
		f.fill(value, child, tag, join(path, key))
		into.SetMapIndex(reflect.ValueOf(key), value)
	}
}

func (f *filler) fillList(into reflect.Value, n *node, tag reflect.StructTag, path string) {
	if !f.is(n, kindArray, path) {
		return
	}
	list := reflect.MakeSlice(into.Type(), len(n.list), len(n.list))
	for i, child := range n.list {
		f.fill(list.Index(i), child, tag, path+"["+strconv.Itoa(i)+"]")
	}
	into.Set(list)
}

func (f *filler) fillInteger(into reflect.Value, n *node, tag reflect.StructTag, path string) {
	if !f.is(n, kindInteger, path) {
		return
	}
	low, _ := strconv.ParseInt(tag.Get("min"), 10, 64)
	high, err := strconv.ParseInt(tag.Get("max"), 10, 64)
	switch {
	case n.whole < low:
		f.problems.add(n, path, fmt.Sprintf("must be at least %d, not %d", low, n.whole))
	case err == nil && n.whole > high:
		f.problems.add(n, path, fmt.Sprintf("must be at most %d, not %d", high, n.whole))
	case into.OverflowInt(n.whole):
		f.problems.add(n, path, "is out of range on this machine")
	default:
		into.SetInt(n.whole)
	}
}

func (f *filler) fillDuration(into reflect.Value, n *node, tag reflect.StructTag, path string) {
	if n.kind != kindString {
		f.problems.add(n, path, fmt.Sprintf(`must be a duration like "5s", not %s`, n.kind))
		return
	}
	var read Duration
	err := read.UnmarshalText([]byte(n.text))
	if err == nil && read == 0 && tag.Get("min") != "0" {
		err = errors.New("must be longer than 0s")
	}
	if err != nil {
		f.problems.add(n, path, err.Error())
		return
	}
	into.SetInt(int64(read))
}

func (f *filler) fillString(into reflect.Value, n *node, tag reflect.StructTag, path string) {
	if !f.is(n, kindString, path) {
		return
	}
	text := n.text
	err := checkText(tag.Get("rule"), text)
	if choices := strings.Fields(tag.Get("oneof")); len(choices) > 0 {
		err = checkChoice(choices, text)
	}
	if err == nil && tag.Get("rule") == "path" {
		text, err = absolute(n.from.dir, text)
	}
	if err != nil {
		f.problems.add(n, path, err.Error())
		return
	}
	into.SetString(text)
}
