package native

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v4"

	"portcullis/fabricsm/strictyaml"
)

// parseYAML reads a document into a tree.
func parseYAML(data []byte) (value, error) {
	root, err := strictyaml.Document("", data, maxSize)
	if e, ok := errors.AsType[*strictyaml.Error](err); ok {
		return value{}, &syntaxError{e.Problems[0].Line, e.Problems[0].Text}
	}
	return fromNode(root, 0)
}

func fromNode(n *yaml.Node, depth int) (value, error) {
	v := value{line: n.Line}
	switch {
	case depth > maxDepth:
		return v, &syntaxError{n.Line, fmt.Sprintf("nested deeper than %d", maxDepth)}
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return v, &syntaxError{n.Line, "anchors and aliases are not taken: write the value out"}
	}
	step := 1
	switch n.Kind {
	case yaml.ScalarNode:
		v.word, v.text = n.Value, n.Tag == "!!str"
		if n.Tag == "!!null" && n.Value != "" {
			return v, &syntaxError{n.Line, fmt.Sprintf("%q: leave a key out that has no value", n.Value)}
		}
		return v, nil
	case yaml.SequenceNode:
		v.shape = list
	case yaml.MappingNode:
		v.shape, step = table, 2
	default:
		return v, &syntaxError{n.Line, "it is neither a value nor a list nor a table"}
	}
	for i := step - 1; i < len(n.Content); i += step {
		item, err := fromNode(n.Content[i], depth+1)
		if err != nil {
			return v, err
		}
		if v.shape == table {
			if n.Content[i-1].Kind != yaml.ScalarNode {
				return v, &syntaxError{n.Content[i-1].Line, "a key is no word"}
			}
			v.keys = append(v.keys, n.Content[i-1].Value)
		}
		v.items = append(v.items, item)
	}
	return v, nil
}
