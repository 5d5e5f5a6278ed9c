package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// printed returns what a value is printed as.
func printed(t *testing.T, output string, v any) (string, error) {
	t.Helper()
	var out bytes.Buffer
	env := New(nil, &out, nil)
	if err := env.output.Set(output); err != nil {
		t.Fatalf("%s: %v", output, err)
	}
	err := env.Print(v, func(w *Columns) {
		w.Row("HOST", "WIDE")
		w.Row("h1", map[bool]string{true: "yes"}[w.Wide])
	})
	return out.String(), err
}

// Templates find in a result what they find in its JSON, in the syntax of kubectl.
func TestJSONPath(t *testing.T) {
	t.Parallel()
	hosts := v1.List[v1.HostSummary]{Items: []v1.HostSummary{
		{ID: "h1", Tenant: "acme", Epoch: 12345678, Phase: v1.PhaseAdmitted, PKey: ib.PKey(0x8001), Labels: map[string]string{"example.org/room": "b"}},
		{ID: "h2", Epoch: 2, Phase: v1.PhaseQuarantined, Why: "a\x1b[2Jb\u202ec\u009bd"},
	}}
	for template, want := range map[string]string{
		"{.items[*].id}":            "h1 h2\n",
		"{.items[0].epoch}":         "12345678\n",
		"{.items[0].p_key}":         "0x8001\n",
		"{.items[1].tenant}":        "",
		"{.items[*].tenant}{\"|\"}": "acme|\n",
		"{range .items[*]}{.id}{\"\\t\"}{.phase}{\"\\n\"}{end}": "h1\tadmitted\nh2\tquarantined\n",
		"{.items[?(@.epoch>2)].id}":                             "h1\n",
		"{.items[?(@.phase==\"quarantined\")].id}":              "h2\n",
		"{.items[0].labels.example\\.org/room}":                 "b\n",
		"{.items[0].labels}":                                    "{\"example.org/room\":\"b\"}\n",
		"{.items[1].why}":                                       "a\ufffd[2Jb\ufffdc\ufffdd\n",
		"{..id}":                                                "h1 h2\n",
		"plain text":                                            "plain text\n",
	} {
		if got, err := printed(t, "jsonpath="+template, hosts); err != nil || got != want {
			t.Errorf("%s is printed as %q, %v, want %q", template, got, err, want)
		}
	}
	var usage *UsageError
	if got, err := printed(t, "jsonpath={.items[7].id}", hosts); !errors.As(err, &usage) || got != "" || !strings.Contains(err.Error(), "out of bounds") {
		t.Errorf("a host that is not there is printed as %q, %v", got, err)
	}
}

// An output format is known before the service is asked.
func TestFormats(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"xml":               "want table, wide, json, yaml or jsonpath=TEMPLATE",
		"json=x":            "want table, wide, json, yaml or jsonpath=TEMPLATE",
		"jsonpath":          "the template is missing",
		"jsonpath=":         "the template is missing",
		"jsonpath={.a":      "the template is no JSONPath: unclosed action",
		"jsonpath={.a[b]}":  "the template is no JSONPath",
		"jsonpath={range .": "the template is no JSONPath",
	} {
		f := format{kind: formatTable}
		if err := f.Set(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if f.String() != formatTable {
			t.Errorf("after %s the format is %v", text, f.String())
		}
	}
	f := format{}
	if err := f.Set("jsonpath={.a}"); err != nil || f.String() != "jsonpath={.a}" {
		t.Errorf("%v, %v", f.String(), err)
	}
	for output, want := range map[string]string{"table": "HOST  WIDE\nh1    -\n", "wide": "HOST  WIDE\nh1    yes\n", "json": "1\n", "yaml": "1\n", "jsonpath={@}": "1\n"} {
		if got, err := printed(t, output, 1); err != nil || got != want {
			t.Errorf("%s prints %q, %v, want %q", output, got, err, want)
		}
	}
}
