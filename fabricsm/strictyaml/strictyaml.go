// Package strictyaml reads the YAML files of every part of the product. It rejects unknown keys, with the key that was
// probably meant, and keys that occur twice. It bounds size, depth and the expansion of aliases. Each mistake is reported
// with file and line, in terms of the file.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Bounds of a file, whatever its size.
const (
	maxDepth = 64     // lists and tables within each other
	maxAlias = 10_000 // values that come of aliases
)

// options are those of every file. They are made for each: a plugin may keep what it has seen.
func options() []yaml.Option {
	return []yaml.Option{
		yaml.WithKnownFields(),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth), loaderlimits.AliasValue(maxAlias))),
	}
}

// Error lists the mistakes of a file.
type Error struct {
	Name     string // of the file; "": the caller names it
	Problems []Problem
}

// Problem is a mistake.
type Problem struct {
	Line    int    // 0: the file as a whole
	Text    string // in terms of the file
	Message string // in the parser's words, which name types
}

// Error returns a line for each mistake.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		if e.Name != "" {
			lines[i] = e.Name + ": "
		}
		if p.Line > 0 {
			lines[i] += fmt.Sprintf("line %d: ", p.Line)
		}
		lines[i] += p.Text
	}
	return strings.Join(lines, "\n")
}

// Load reads a file of one document into v, which is a pointer. name is for errors, most bounds the file in bytes. An
// error is an *Error; v keeps what could be read.
func Load(name string, data []byte, most int, v any) error {
	err := load(name, data, most, v)
	suggest(err, v, func() (*yaml.Node, error) { return Document("", data, len(data)) })
	return err
}

// suggest adds to each unknown key of an error which one was probably meant.
func suggest(err error, v any, root func() (*yaml.Node, error)) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return
	}
	for i := range e.Problems {
		p := &e.Problems[i]
		if m := unknownKey.FindStringSubmatch(p.Message); m != nil {
			p.Text = "unknown key " + m[1] + suggestion(root, reflect.TypeOf(v), m[1], p.Line)
		}
	}
}

// Documents returns the roots of the documents of a file, in their order. Those that are empty are left out. mostDocuments
// bounds how many there are. Other arguments and the error are those of Load. [Fill] reads them strictly.
func Documents(name string, data []byte, most, mostDocuments int) ([]*yaml.Node, error) {
	if len(data) > most {
		return nil, &Error{name, []Problem{{Text: fmt.Sprintf("more than %d bytes", most)}}}
	}
	l, err := yaml.NewLoader(bytes.NewReader(data), options()...)
	if err != nil {
		return nil, problems(name, err)
	}
	var roots []*yaml.Node
	for number := 1; ; number++ {
		var doc yaml.Node
		if err := l.Load(&doc); errors.Is(err, io.EOF) {
			return roots, nil
		} else if err != nil {
			return nil, problems(name, err)
		}
		if number > mostDocuments {
			return nil, &Error{name, []Problem{{Text: fmt.Sprintf("more than %d documents", mostDocuments)}}}
		}
		root := &doc
		if doc.Kind == yaml.DocumentNode && len(doc.Content) > 0 {
			root = doc.Content[0]
		}
		if root.Kind != yaml.DocumentNode && (root.Kind != yaml.ScalarNode || root.Tag != "!!null") {
			roots = append(roots, root)
		}
	}
}

// Fill reads one of Documents into v, which is a pointer. name is for errors. An error is an *Error; v keeps what could be read.
func Fill(name string, root *yaml.Node, v any) error {
	err := root.Load(v, options()...)
	if err == nil {
		return nil
	}
	err = problems(name, err)
	suggest(err, v, func() (*yaml.Node, error) { return root, nil })
	return err
}

// LoadOptional is Load for a file that may be empty, or have only comments: v stays as it is then.
func LoadOptional(name string, data []byte, most int, v any) error {
	if len(data) <= most && Blank(data) {
		return nil
	}
	return Load(name, data, most, v)
}

// Document returns the root of a file's only document, for readers that walk it themselves. They reject unknown and
// doubled keys. Arguments and error are those of Load.
func Document(name string, data []byte, most int) (*yaml.Node, error) {
	var doc yaml.Node
	if err := load(name, data, most, &doc); err != nil {
		return nil, err
	}
	if doc.Kind == yaml.DocumentNode && len(doc.Content) > 0 {
		return doc.Content[0], nil
	}
	return &doc, nil
}

// Blank reports whether a file is empty or has only comments.
func Blank(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

func load(name string, data []byte, most int, v any) error {
	if len(data) > most {
		return &Error{name, []Problem{{Text: fmt.Sprintf("more than %d bytes", most)}}}
	}
	err := yaml.Load(data, v, options()...)
	if err == nil {
		return nil
	}
	return problems(name, err)
}

// problems returns an error of the parser in terms of the file.
func problems(name string, err error) *Error {
	e := &Error{Name: name}
	if many, ok := errors.AsType[*yaml.LoadErrors](err); ok {
		for _, one := range many.Errors {
			e.add(one.Mark.Line, one.Message)
		}
	} else if one, ok := errors.AsType[*yaml.LoadError](err); ok {
		e.add(one.Mark.Line, one.Message)
	} else {
		e.add(0, err.Error())
	}
	return e
}

func (e *Error) add(line int, message string) {
	message = strings.TrimPrefix(message, "yaml: ")
	e.Problems = append(e.Problems, Problem{line, inTerms(message), message})
}

var (
	unknownKey = regexp.MustCompile(`(?s)^field (.+?) not found in type `)
	wrongShape = regexp.MustCompile("(?s)^cannot construct !!(\\w+)( `.*`)? into .+$")
)

// inTerms says it without types of Go.
func inTerms(s string) string {
	switch s {
	case "no documents in stream":
		return "it is empty"
	case "expected single document, found multiple":
		return "it has more than one document"
	}
	return wrongShape.ReplaceAllString(s, "$1$2 does not belong here")
}
