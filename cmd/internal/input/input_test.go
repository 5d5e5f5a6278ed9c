package input

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFile(file, 4); err != nil || string(data) != "four" {
		t.Errorf("4 of 4 bytes: %q, %v", data, err)
	}
	if _, err := ReadFile(file, 3); err == nil || err.Error() != file+": more than 3 bytes" {
		t.Errorf("4 of 3 bytes: %v", err)
	}
	if _, err := ReadFile("/dev/zero", Small); err == nil {
		t.Error("a file without end was read")
	}
	if _, err := ReadFile(dir, Small); err == nil {
		t.Error("a folder was read")
	}
	if _, err := ReadFile(filepath.Join(dir, "none"), Small); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
}
