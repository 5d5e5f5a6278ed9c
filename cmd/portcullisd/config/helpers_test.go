package config

import (
	"os"
	"testing"
)

// write writes a file that only its owner may use.
func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
