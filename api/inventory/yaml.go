package inventory

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"portcullis/fabricsm/strictyaml"
)

// reader walks one file's YAML and reports what it does not expect. It takes
// text as it was written: a GUID is never read as a number first.
type reader struct {
	file   int
	name   string
	report *report
}

func (r *reader) at(n *yaml.Node) spot { return spot{r.file, r.name, n.Line} }

// document returns the root of the only document, nil if there is none.
func (r *reader) document(data []byte) *yaml.Node {
	if strictyaml.Blank(data) {
		r.report.add(spot{r.file, r.name, 0}, "file is empty: want hosts: or cables:")
		return nil
	}
	root, err := strictyaml.Document(r.name, data, MaxFileSize)
	if e, ok := errors.AsType[*strictyaml.Error](err); ok {
		for _, p := range e.Problems {
			where := ""
			if p.Line > 0 {
				where = fmt.Sprintf("line %d: ", p.Line)
			}
			r.report.add(spot{r.file, r.name, p.Line}, "not YAML: yaml: %s%s", where, p.Text)
		}
		return nil
	}
	return root
}

// fields returns the values of a mapping by key. Keys that are not known, not plain text or there twice are reported.
func (r *reader) fields(n *yaml.Node, what string, known ...string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		r.report.add(r.at(n), "%s: want a mapping with %s", what, strings.Join(known, ", "))
		return nil
	}
	out := make(map[string]*yaml.Node, len(known))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || !slices.Contains(known, key.Value):
			r.report.add(r.at(key), "%s: unknown key %s: known are %s", what, quote(key.Value), strings.Join(known, ", "))
		case out[key.Value] != nil:
			r.report.add(r.at(key), "%s: key %q is there twice", what, key.Value)
		default:
			out[key.Value] = value
		}
	}
	return out
}

// items returns the elements of a list of at most limit.
func (r *reader) items(n *yaml.Node, what string, limit int) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		r.report.add(r.at(n), "%s: want a list", what)
		return nil
	}
	if len(n.Content) > limit {
		r.report.add(r.at(n), "%s: %d entries, at most %d are allowed", what, len(n.Content), limit)
		return nil
	}
	return n.Content
}

// text returns a scalar's text; absent and empty are "". Anchors and aliases are refused with everything else that is not a
// scalar.
func (r *reader) text(n *yaml.Node, what string) (string, spot) {
	if n == nil {
		return "", spot{}
	}
	if n.Kind != yaml.ScalarNode {
		r.report.add(r.at(n), "%s: want plain text", what)
		return "", r.at(n)
	}
	if n.Tag == "!!null" {
		return "", r.at(n)
	}
	return n.Value, r.at(n)
}

// quote shortens what an input said before it is shown.
func quote(s string) string {
	const limit = 64
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "..."
	}
	return strconv.Quote(s)
}
