package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v4"

	"portcullis/cmd/internal/terminal"
)

// PrintJSON writes v so that a terminal shows it as it is, too.
func (env *Env) PrintJSON(v any) error {
	e := terminal.NewEncoder(env.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printYAML writes v with the names that its JSON has.
func (env *Env) printYAML(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var n yaml.Node
	if err := yaml.Load(data, &n); err != nil {
		return fmt.Errorf("turn JSON into YAML: %w", err)
	}
	plainStyle(&n)
	if data, err = yaml.Dump(&n); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	_, err = env.Out.Write(terminal.YAML(data))
	return err
}

// plainStyle has a node and all below it written as people write YAML. Values with hidden characters are put in quotes,
// where they can be escaped.
func plainStyle(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode || len(n.Content) > 0 {
		n.Style = 0
	}
	if strings.ContainsFunc(n.Value, terminal.Hidden) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		plainStyle(c)
	}
}

// Print writes v as JSON, as YAML, or what a JSONPath finds in it; or the output of table as aligned columns. Cells are separated by tabs.
func (env *Env) Print(v any, table func(w *Columns)) error {
	switch env.output.kind {
	case formatJSON:
		return env.PrintJSON(v)
	case formatYAML:
		return env.printYAML(v)
	case formatPath:
		return env.printPath(v)
	}
	c := &Columns{Wide: env.Wide(), out: env.Out}
	table(c)
	return c.end()
}

// Columns writes aligned columns, two spaces apart, until the first error.
type Columns struct {
	Wide bool // columns are wanted that most people need rarely

	out io.Writer
	tab *tabwriter.Writer
	err error
}

// Row writes one line. Cells are made plain, because names and descriptions
// come from hosts and devices; an empty cell is shown as a dash.
func (c *Columns) Row(cells ...string) {
	if c.tab == nil {
		c.tab = tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.StripEscape)
	}
	for i := range cells {
		if cells[i] = Plain(cells[i]); cells[i] == "" {
			cells[i] = "-"
		}
	}
	line := strings.Join(cells, "\t") + "\n"
	if c.err == nil {
		_, c.err = io.WriteString(c.tab, line)
	}
}

// Gap ends a table with an empty line; the next row begins another.
func (c *Columns) Gap() {
	if c.flush(); c.err == nil {
		_, c.err = io.WriteString(c.out, "\n")
	}
}

// Text writes a line of its own after the rows so far.
func (c *Columns) Text(format string, args ...any) {
	if c.flush(); c.err == nil {
		_, c.err = fmt.Fprintln(c.out, Plain(fmt.Sprintf(format, args...)))
	}
}

func (c *Columns) flush() {
	if c.tab != nil && c.err == nil {
		c.err = c.tab.Flush()
	}
	c.tab = nil
}

func (c *Columns) end() error {
	c.flush()
	return c.err
}

// Deleted reports a deletion.
func (env *Env) Deleted(kind, name string) error {
	return env.Print(map[string]string{"deleted": name}, func(w *Columns) {
		w.Text("%s", fmt.Sprintf("deleted %s %s", kind, name))
	})
}
