package cli

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// TestNamesThatTerminalsObey checks that the description that a host sets reaches a terminal by JSON and YAML no more than
// by tables, and that programs read it unchanged.
func TestNamesThatTerminalsObey(t *testing.T) {
	for _, name := range []string{"x\u009b2Jy", "gpu-1\u202e\u2066moc", "a\u00adb\u200bc", "\U000e0001tag", "\x7f", "Grüße 漢字", "two\nlines\u009b", "\x1b[2J"} {
		in := map[string]string{"node_description": name}
		for form, print := range map[string]func(*Env, any) error{"JSON": (*Env).PrintJSON, "YAML": (*Env).printYAML} {
			var out bytes.Buffer
			if err := print(New(nil, &out, nil), in); err != nil {
				t.Fatal(err)
			}
			if bytes.ContainsFunc(out.Bytes(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
				t.Errorf("%q as %s: %q", name, form, out.String())
			}
			var back map[string]string
			var err error
			if form == "JSON" {
				err = json.Unmarshal(out.Bytes(), &back)
			} else {
				err = yaml.Load(out.Bytes(), &back)
			}
			if err != nil || back["node_description"] != name {
				t.Errorf("%q as %s is read as %q, %v", name, form, back, err)
			}
		}
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"leaf-1 mlx5_0":   "leaf-1 mlx5_0",
		"a\x1b[31mb":      "a\ufffd[31mb",
		"a\tb\nc\rd":      "a\ufffdb\ufffdc\ufffdd",
		"a\u202eb":        "a\ufffdb",
		"Zürich\u00a0HCA": "Zürich\ufffdHCA",
		"\xff":            "\ufffd",
	} {
		if got := Plain(in); got != want {
			t.Errorf("plain(%q) = %q, want %q", in, got, want)
		}
	}
}
