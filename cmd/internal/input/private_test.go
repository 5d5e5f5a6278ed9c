package input

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPrivateKeyFiles(t *testing.T) {
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o640: true, 0o644: false, 0o602: false} {
		file := filepath.Join(t.TempDir(), "server.key")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		if err := CheckPrivate(file); (err == nil) != ok {
			t.Errorf("mode %04o: got %v, want accepted %v", mode, err, ok)
		}
	}
}
