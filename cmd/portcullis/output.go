package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"go.yaml.in/yaml/v4"

	"portcullis/cmd/internal/terminal"
	"portcullis/fabricsm/ib"
)

// format is how results are printed.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

// Set, String and Type implement pflag.Value.
func (f *format) Set(s string) error {
	switch v := format(s); v {
	case formatTable, formatJSON, formatYAML:
		*f = v
		return nil
	default:
		return fmt.Errorf("want table, json or yaml")
	}
}

func (f *format) String() string { return string(*f) }

// Type names the value in help texts.
func (f *format) Type() string { return "FORMAT" }

// printJSON writes v so that a terminal shows it as it is, too.
func (a *app) printJSON(v any) error {
	e := terminal.NewEncoder(a.stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// printYAML writes v with the names that its JSON has.
func (a *app) printYAML(v any) error {
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
	_, err = a.stdout.Write(terminal.YAML(data))
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

// print writes v as JSON or YAML, or the output of table as aligned columns. Cells are separated by tabs.
func (a *app) print(v any, table func(w *columns)) error {
	switch a.output {
	case formatJSON:
		return a.printJSON(v)
	case formatYAML:
		return a.printYAML(v)
	case formatTable:
	}
	c := &columns{out: a.stdout}
	table(c)
	return c.end()
}

// columns writes aligned columns, two spaces apart, until the first error.
type columns struct {
	out io.Writer
	tab *tabwriter.Writer
	err error
}

// row writes one line. Cells are made plain, because names and descriptions
// come from hosts and devices; an empty cell is shown as a dash.
func (c *columns) row(cells ...string) {
	if c.tab == nil {
		c.tab = tabwriter.NewWriter(c.out, 0, 0, 2, ' ', tabwriter.StripEscape)
	}
	for i := range cells {
		if cells[i] = plain(cells[i]); cells[i] == "" {
			cells[i] = "-"
		}
	}
	line := strings.Join(cells, "\t") + "\n"
	if c.err == nil {
		_, c.err = io.WriteString(c.tab, line)
	}
}

// gap ends a table with an empty line; the next row begins another.
func (c *columns) gap() {
	if c.flush(); c.err == nil {
		_, c.err = io.WriteString(c.out, "\n")
	}
}

// text writes a line of its own after the rows so far.
func (c *columns) text(format string, args ...any) {
	if c.flush(); c.err == nil {
		_, c.err = fmt.Fprintln(c.out, plain(fmt.Sprintf(format, args...)))
	}
}

func (c *columns) flush() {
	if c.tab != nil && c.err == nil {
		c.err = c.tab.Flush()
	}
	c.tab = nil
}

func (c *columns) end() error {
	c.flush()
	return c.err
}

func plain(s string) string { return terminal.Plain(s) }

// plainLines is plain for a text of several lines.
func plainLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = plain(strings.ReplaceAll(lines[i], "\t", "    "))
	}
	return strings.Join(lines, "\n")
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func pkey(k ib.PKey) string {
	if !k.Valid() {
		return ""
	}
	return k.String()
}

func pkeys(keys []ib.PKey) string {
	words := make([]string, len(keys))
	for i, k := range keys {
		words[i] = k.String()
	}
	return strings.Join(words, " ")
}

func place(p ib.Place) string {
	if p.IsZero() {
		return ""
	}
	return p.String()
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
