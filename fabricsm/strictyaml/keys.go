package strictyaml

import (
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"portcullis/fabricsm/strictyaml/spelling"
)

// LineOf returns the line of the key that path names, or of the nearest one around it that the file has; 0 when it has
// none. Elements of lists count from 0. root is what Document returns, or nil.
func LineOf(root *yaml.Node, path ...string) int {
	line, n := 0, root
	for _, key := range path {
		if n == nil {
			break
		}
		var next *yaml.Node
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == key {
					line, next = n.Content[i].Line, n.Content[i+1]
				}
			}
		case yaml.SequenceNode:
			if i, err := strconv.Atoi(key); err == nil && i < len(n.Content) {
				next = n.Content[i]
				line = next.Line
			}
		default:
		}
		n = next
	}
	return line
}

// suggestion names the key that an unknown one on a line was most likely meant
// to be: the nearest beside it, or one of that name elsewhere.
func suggestion(of func() (*yaml.Node, error), t reflect.Type, key string, line int) string {
	root, err := of()
	if err != nil {
		return ""
	}
	beside, ok := siblings(root, t, key, line)
	if !ok || len(beside) == 0 {
		return ""
	}
	best, least := "", max(2, len(key)/3)+1
	for _, k := range beside {
		if d := spelling.Distance(key, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		best = elsewhere("", t, key)
	}
	if best == "" {
		return "; the keys here are " + strings.Join(beside, ", ")
	}
	return "; did you mean " + best + "?"
}

// siblings returns the keys that are known where the unknown one stands.
func siblings(n *yaml.Node, t reflect.Type, key string, line int) ([]string, bool) {
	step, fields, names := 1, map[string]reflect.Type(nil), []string(nil)
	switch t = element(t); {
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Map:
		step = 2
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		step, fields = 2, make(map[string]reflect.Type)
		for f := range t.Fields() {
			if name := nameOf(f); name != "" {
				fields[name] = f.Type
				names = append(names, name)
			}
		}
	default:
		return nil, false
	}
	for i := step - 1; i < len(n.Content); i += step {
		below, known := fields[n.Content[i-step+1].Value]
		if fields == nil {
			below, known = t.Elem(), true
		}
		if !known {
			if k := n.Content[i-1]; k.Value == key && k.Line == line {
				return names, true
			}
		} else if keys, ok := siblings(n.Content[i], below, key, line); ok {
			return keys, true
		}
	}
	return nil, false
}

// elsewhere finds a key by its last part.
func elsewhere(prefix string, t reflect.Type, key string) string {
	if t = element(t); t.Kind() != reflect.Struct {
		return ""
	}
	for f := range t.Fields() {
		name := nameOf(f)
		if name == key && prefix != "" {
			return prefix + name
		}
		if name != "" && f.Type.Kind() == reflect.Struct {
			if found := elsewhere(prefix+name+".", f.Type, key); found != "" {
				return found
			}
		}
	}
	return ""
}

// nameOf returns the key of a field; "" if it has none.
func nameOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

// element returns the type that a pointer points to, and any other as it is.
func element(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
