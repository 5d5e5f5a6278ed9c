// Package screentest compares what commands draw with files under testdata.
package screentest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"portcullis/cmd/portcullis/screen"
)

var update = flag.Bool("update", false, "rewrite what frames are expected to be")

// Compare requires lines to be those in a file, to fit a screen of so many columns and rows, and to have no control sequence in them.
// At a height of 0, any number of rows fits. In the file, the first character of a line is its style; "go test -update" rewrites it.
func Compare(t *testing.T, file string, lines []screen.Line, width, height int) {
	t.Helper()
	if height > 0 && len(lines) > height {
		t.Errorf("%d lines, the screen has %d", len(lines), height)
	}
	for _, l := range lines {
		if n := utf8.RuneCountInString(l.Text); n > width || strings.Contains(l.Text, "\x1b") {
			t.Errorf("%d columns, the screen has %d: %q", n, width, l.Text)
		}
	}
	got := text(lines)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(got, string(want)); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}

// text returns lines as the files have them.
func text(lines []screen.Line) string {
	marks := map[screen.Style]string{screen.Normal: " ", screen.Bold: "*", screen.Good: "+", screen.Busy: "~", screen.Bad: "!"}
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%s %s\n", marks[l.Style], l.Text)
	}
	return b.String()
}
