package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// TestNamesThatTerminalsObey checks that no name sends hidden characters to a terminal, and that a reader of the JSON gets
// the name unchanged.
func TestNamesThatTerminalsObey(t *testing.T) {
	for _, name := range []string{"x\u009b2Jy", "gpu-1\u202e\u2066moc", "a\u00adb\u200bc", "\U000e0001tag", "\x7f", "Grüße 漢字", "two\nlines\u009b", "\x1b[2J", "<&>"} {
		var out bytes.Buffer
		if err := NewEncoder(&out).Encode(name); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(strings.TrimSuffix(out.String(), "\n"), Hidden) || bytes.ContainsAny(out.Bytes(), "\x1b\x00") {
			t.Errorf("%q as JSON: %q", name, out.String())
		}
		var back string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != name {
			t.Errorf("%q is read as %q, %v", name, back, err)
		}
		if p := Plain(name); strings.ContainsFunc(p, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q is plainly %q", name, p)
		}
	}
}
