package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v4"
)

// maxConfig bounds a configuration file.
const maxConfig = 1 << 20

// loadConfig reads and checks a configuration file. Every problem is reported,
// a line each, with file and line.
func loadConfig(file string) (*config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, hint(fmt.Errorf("read configuration: %w", err),
			"name one with --config, or make a fresh installation: portcullisd init --dir /etc/portcullis")
	}
	return parseConfig(file, data)
}

func parseConfig(file string, data []byte) (*config, error) {
	if len(data) > maxConfig {
		return nil, fmt.Errorf("%s: more than %d bytes", file, maxConfig)
	}
	c := defaultConfig()
	c.file = file
	if blank(data) {
		return c, nil
	}
	if err := yaml.Load(data, c, yaml.WithKnownFields()); err != nil {
		return nil, hint(yamlProblems(file, err), "portcullisd --print-config shows every key")
	}
	var root yaml.Node
	if err := yaml.Load(data, &root); err != nil {
		return nil, yamlProblems(file, err)
	}
	if problems := c.check(); len(problems) > 0 {
		return nil, problemsAt(file, &root, problems)
	}
	return c, nil
}

// blank reports a file of comments only, which means the defaults.
func blank(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// yamlProblems gives a line FILE:LINE: MESSAGE for each problem of syntax.
func yamlProblems(file string, err error) error {
	if many, ok := errors.AsType[*yaml.LoadErrors](err); ok {
		var lines []error
		for _, e := range many.Errors {
			lines = append(lines, fmt.Errorf("%s:%d: %s", file, e.Mark.Line, wording(e.Message)))
		}
		return errors.Join(lines...)
	}
	if one, ok := errors.AsType[*yaml.LoadError](err); ok {
		return fmt.Errorf("%s:%d: %s", file, one.Mark.Line, wording(one.Message))
	}
	return fmt.Errorf("%s: %w", file, err)
}

// wording says it in the file's terms instead of Go's.
func wording(message string) string {
	if key, ok := strings.CutPrefix(message, "field "); ok {
		if at := strings.Index(key, " not found in type "); at >= 0 {
			return "unknown key " + key[:at]
		}
	}
	return strings.TrimPrefix(strings.ReplaceAll(message, "main.", ""), "yaml: ")
}

// problem is a value that makes no sense, at a key such as "fabric.port".
type problem struct {
	key     string
	message string
}

func problemsAt(file string, root *yaml.Node, problems []problem) error {
	var lines []error
	for _, p := range problems {
		where := file
		if line := lineOf(root, strings.Split(p.key, ".")); line > 0 {
			where = fmt.Sprintf("%s:%d", file, line)
		}
		lines = append(lines, fmt.Errorf("%s: %s: %s", where, p.key, p.message))
	}
	return errors.Join(lines...)
}

// lineOf gives the line of the key that path names, or of the nearest one
// around it that the file has; 0 when it has none.
func lineOf(n *yaml.Node, path []string) int {
	if n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	line := 0
	for _, key := range path {
		if n == nil || n.Kind != yaml.MappingNode {
			return line
		}
		var next *yaml.Node
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				line, next = n.Content[i].Line, n.Content[i+1]
			}
		}
		n = next
	}
	return line
}
