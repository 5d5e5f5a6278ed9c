package main

import (
	"strings"
	"testing"
	"time"

	"portcullis/packaging/mantest"
)

// TestManual holds the manual page against --help.
func TestManual(t *testing.T) {
	t.Parallel()
	mantest.Compare(t, "../../packaging/man/portcullisd.8", func(args ...string) string {
		var out, errs strings.Builder
		if code := run(t.Context(), args, time.Now, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("%s: exit %d\n%s", args, code, errs.String())
		}
		return out.String()
	})
}
