package lonesm

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"portcullis/cmd/internal/terminal"
	"portcullis/fabricsm/sm"
)

// TestTerminalsObeyNoFabric: text that hosts write into descriptions gets to a terminal by neither events nor reports, and
// programs read it as it was.
func TestTerminalsObeyNoFabric(t *testing.T) {
	t.Parallel()
	const name = "gpu-1\u009b2J\u202emoc"
	r := &Report{Problems: []string{name}}
	lines := newEventLines()
	lines.event(time.Now(), &sm.NodeUnreachable{Where: name, Declared: name}, &cause{}, 0)
	for what, write := range map[string]func(io.Writer) error{
		"event":  func(w io.Writer) error { return lines.put(terminal.NewEncoder(w), <-lines.lines) },
		"report": r.writeJSON,
		"table":  r.writeTable,
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "gpu-1") || strings.ContainsFunc(out.String(), terminal.Hidden) && what != "table" || strings.ContainsAny(out.String(), "\u009b\u202e\x1b") {
			t.Errorf("%s: %q", what, out.String())
		}
		if what != "table" {
			var back any
			if err := json.Unmarshal(out.Bytes(), &back); err != nil || !holds(back, name) {
				t.Errorf("%s is read as %q, %v", what, back, err)
			}
		}
	}
}

// holds looks for a text in what JSON had.
func holds(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return strings.Contains(v, text)
	case []any:
		for _, e := range v {
			if holds(e, text) {
				return true
			}
		}
	case map[string]any:
		for _, e := range v {
			if holds(e, text) {
				return true
			}
		}
	}
	return false
}
