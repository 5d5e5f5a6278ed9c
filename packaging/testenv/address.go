package testenv

import (
	"testing"

	"portcullis/packaging/testenv/loopback"
)

// Address returns an address of loopback, "127.0.0.1:PORT", on which no process listens and which no
// other test is given until this one has ended, also in other processes.
func Address(t testing.TB) string {
	t.Helper()
	return Addresses(t, 1)[0]
}

// Addresses returns n addresses as Address does.
func Addresses(t testing.TB, n int) []string {
	t.Helper()
	given := make([]string, 0, n)
	for range n {
		c, err := loopback.New()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		given = append(given, c.Address)
	}
	return given
}
