// Package testenv says what a test does on a machine that lacks a real part
// which it needs, such as ibsim, swtpm or a C compiler. The test is skipped with
// a sentence; where PORTCULLIS_REAL_PARTS says required, as it does in "make
// test", it fails. It also assigns ports to tests, and builds the programs that they start.
package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Required reports whether every real part must be there, so that nothing may be
// skipped for the lack of one.
func Required() bool { return os.Getenv("PORTCULLIS_REAL_PARTS") == "required" }

// Need ends a test that lacks a part. missing says which part that is and how to
// come by it; nil says that all are there.
func Need(t testing.TB, missing error) {
	t.Helper()
	switch {
	case missing == nil:
	case Required():
		t.Fatalf("real parts are required: %v", missing)
	default:
		t.Skipf("needs a real part: %v", missing)
	}
}

// Program returns the path of a program, which is looked for where
// administrators have theirs too, and ends a test that lacks it.
func Program(t testing.TB, name string) string {
	t.Helper()
	for _, file := range []string{name, filepath.Join("/usr/sbin", name), filepath.Join("/sbin", name)} {
		if path, err := exec.LookPath(file); err == nil {
			return path
		}
	}
	Need(t, fmt.Errorf("%s is not installed: run \"make setup\"", name))
	return ""
}
