package tpmtest

import (
	"os"
	"testing"

	"portcullis/packaging/testenv"
)

// New starts a TPM that ends with the test. Without swtpm on the machine the
// test is skipped, or fails when PORTCULLIS_REAL_PARTS=required. An empty Dir
// becomes a temporary folder.
func New(t testing.TB, o Options) *TPM {
	t.Helper()
	Require(t)
	if o.Dir == "" {
		o.Dir = ShortDir(t)
	}
	dev, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// Require skips or fails the test when swtpm is not installed.
func Require(t testing.TB) {
	t.Helper()
	testenv.Need(t, Missing())
}

// ShortDir is a temporary folder whose path leaves room for a socket's name;
// that of t.TempDir may not.
func ShortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tpm") //nolint:usetesting // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
