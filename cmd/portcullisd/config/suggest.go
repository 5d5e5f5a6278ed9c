package config

import (
	"reflect"
	"strconv"
	"strings"

	"portcullis/cmd/portcullisd/command"

	"go.yaml.in/yaml/v4"
)

// lineOf returns the line of the key that path names, or of the nearest one around it that the file has; 0 when it has
// none.
func lineOf(n *yaml.Node, path []string) int {
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	line := 0
	for _, key := range path {
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
		if next == nil {
			return line
		}
		n = next
	}
	return line
}

// suggestion names the key that an unknown one on a line was most likely meant
// to be: the nearest beside it, or one of that name elsewhere.
func suggestion(root *yaml.Node, key string, line int) string {
	if root.Kind == yaml.DocumentNode && len(root.Content) > 0 {
		root = root.Content[0]
	}
	beside, ok := siblings(root, reflect.TypeFor[Config](), key, line)
	if !ok {
		return ""
	}
	best, least := "", max(2, len(key)/3)+1
	for _, k := range beside {
		if d := command.Distance(key, k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		best = elsewhere("", reflect.TypeFor[Config](), key)
	}
	if best == "" {
		return "; the keys here are " + strings.Join(beside, ", ")
	}
	return "; did you mean " + best + "?"
}

// siblings returns the keys that are known where the unknown one stands.
func siblings(n *yaml.Node, t reflect.Type, key string, line int) ([]string, bool) {
	if t.Kind() == reflect.Slice {
		for _, c := range n.Content {
			if keys, ok := siblings(c, t.Elem(), key, line); ok {
				return keys, true
			}
		}
		return nil, false
	}
	if t.Kind() != reflect.Struct || n.Kind != yaml.MappingNode {
		return nil, false
	}
	fields, names := make(map[string]reflect.Type), []string(nil)
	for f := range t.Fields() {
		if name := f.Tag.Get("yaml"); name != "" {
			fields[name] = f.Type
			names = append(names, name)
		}
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if below, ok := fields[k.Value]; !ok {
			if k.Value == key && k.Line == line {
				return names, true
			}
		} else if keys, ok := siblings(n.Content[i+1], below, key, line); ok {
			return keys, true
		}
	}
	return nil, false
}

// elsewhere finds a key by its last part.
func elsewhere(prefix string, t reflect.Type, key string) string {
	for f := range t.Fields() {
		name := f.Tag.Get("yaml")
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
