package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"

	"portcullis/cmd/internal/terminal"
)

// Kinds of formats.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatPath  = "jsonpath"
)

// wantFormat names the formats.
const wantFormat = "table, wide, json, yaml or jsonpath=TEMPLATE"

// format is how results are printed.
type format struct {
	kind     string
	template string             // of formatPath
	path     *jsonpath.JSONPath // of formatPath
}

// Set implements pflag.Value.
func (f *format) Set(s string) error {
	kind, template, isPath := strings.Cut(s, "=")
	switch kind {
	case formatTable, formatWide, formatJSON, formatYAML:
		if isPath {
			return fmt.Errorf("want %s", wantFormat)
		}
		*f = format{kind: kind}
		return nil
	case formatPath:
		if template == "" {
			return fmt.Errorf("the template is missing; for example jsonpath='{.items[*].id}'")
		}
		path := jsonpath.New("output").AllowMissingKeys(true)
		if err := path.Parse(template); err != nil {
			return fmt.Errorf("the template is no JSONPath: %w; for example jsonpath='{.items[*].id}'", err)
		}
		*f = format{kind, template, path}
		return nil
	default:
		return fmt.Errorf("want %s", wantFormat)
	}
}

func (f *format) String() string {
	if f.kind == formatPath {
		return f.kind + "=" + f.template
	}
	return f.kind
}

// Type names the value in help texts.
func (f *format) Type() string { return "FORMAT" }

// completeFormats completes the option.
func completeFormats(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{formatTable, formatWide, formatJSON, formatYAML, formatPath + "="}, cobra.ShellCompDirectiveNoFileComp
}

// printPath writes what the template finds in the JSON of v, as kubectl does: a value that is missing is nothing. A line ends the output, if
// the template does not. Characters that a terminal would obey, or not show, are replaced.
func (env *Env) printPath(v any) error {
	value, err := plainJSON(v)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := env.output.path.Execute(&out, value); err != nil {
		return &UsageError{
			Msg:  fmt.Sprintf("the template %s does not fit the result: %v", env.output.template, err),
			Hint: "--output json shows the result",
		}
	}
	text := strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < ' ' || terminal.Hidden(r)) {
			return '\ufffd'
		}
		return r
	}, out.String())
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err = env.Out.Write([]byte(text))
	return err
}

// plainJSON returns a value as its JSON has it: maps, lists, strings, and numbers of which whole ones are int64, so that they are compared
// and printed as such.
func plainJSON(v any) (any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	return numbers(out), nil
}

func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = numbers(v[k])
		}
	case []any:
		for i := range v {
			v[i] = numbers(v[i])
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		if n, err := v.Float64(); err == nil {
			return n
		}
	}
	return v
}
