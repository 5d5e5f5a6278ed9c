package source

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"

	"portcullis/api/inventory"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/strictyaml"
)

// object is an object of JSON with its line. The readers of exports look only at the keys that they know: a product adds
// others with each release.
type object struct{ *yaml.Node }

// objects returns the objects of an export: those of a list, or of the list that is under one of keys.
func objects(in *inventory.Input, data []byte, keys ...string) []object {
	root, err := strictyaml.Document("", data, inventory.MaxFileSize)
	if err != nil {
		if e, ok := errors.AsType[*strictyaml.Error](err); ok {
			for _, p := range e.Problems {
				in.Problem(p.Line, "not JSON: %s", p.Text)
			}
			return nil
		}
		in.Problem(0, "not JSON: %v", err)
		return nil
	}
	for _, key := range keys {
		if n := (object{root}).get(key); n.Node != nil {
			root = n.Node
			break
		}
	}
	if root == nil || root.Kind != yaml.SequenceNode {
		in.Problem(1, "want a list of objects, or an object with one under %s", strings.Join(keys, " or "))
		return nil
	}
	out := make([]object, 0, len(root.Content))
	for _, n := range root.Content {
		if n.Kind != yaml.MappingNode {
			in.Problem(n.Line, "want an object")
			continue
		}
		out = append(out, object{n})
	}
	return out
}

// get returns the value under a path of keys, without a node if there is none.
func (o object) get(path ...string) object {
	for _, key := range path {
		if o.Node == nil || o.Kind != yaml.MappingNode {
			return object{}
		}
		next := object{}
		for i := 0; i+1 < len(o.Content); i += 2 {
			if o.Content[i].Value == key {
				next = object{o.Content[i+1]}
			}
		}
		o = next
	}
	return o
}

// text returns the plain value under a path, "" if there is none.
func (o object) text(path ...string) string {
	n := o.get(path...)
	if n.Node == nil || n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return ""
	}
	return n.Value
}

// list returns the objects of the list under a path.
func (o object) list(path ...string) (out []object) {
	n := o.get(path...)
	if n.Node == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	for _, item := range n.Content {
		out = append(out, object{item})
	}
	return out
}

// guid reads a GUID as products write it: 16 hexadecimal digits, with or without 0x, colons or hyphens between.
func guid(s string) (ib.GUID, bool) {
	digits := strings.NewReplacer(":", "", "-", "").Replace(strings.TrimPrefix(strings.ToLower(s), "0x"))
	if len(digits) != 16 {
		return 0, false
	}
	g, err := ib.ParseGUID("0x" + digits)
	return g, err == nil && g.Valid()
}
