package main

import (
	"strings"
	"testing"

	"portcullis/packaging/mantest"
)

// TestManual holds the manual page against --help.
func TestManual(t *testing.T) {
	mantest.Compare(t, "../../packaging/man/portcullis-sim.1", func(args ...string) string {
		var out, errs strings.Builder
		if code := run(t.Context(), args, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("%s: exit %d\n%s", args, code, errs.String())
		}
		return out.String()
	})
}
