package input

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v4"
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

func TestExplain(t *testing.T) {
	type shape struct {
		Boards []struct {
			PSID string `yaml:"psid"`
		} `yaml:"boards"`
		Floor uint32 `yaml:"floor"`
	}
	for _, tt := range []struct{ text, want string }{
		{"", "f.yaml: it is empty"},
		{"# nothing\n", "f.yaml: it is empty"},
		{"boardz:\n", "f.yaml: line 1: unknown key boardz"},
		{"x: 4\ny: 5\n", "f.yaml: line 1: unknown key x; line 2: unknown key y"},
		{"boards: 3\nx: 4\n", "f.yaml: line 1: int `3` does not belong here; line 2: unknown key x"},
		{"floor: new\nboards: {a: b}\n", "f.yaml: line 1: str `new` does not belong here; line 2: map does not belong here"},
		{"boards: [\n", "f.yaml: line 2: did not find expected node content"},
		{"\x00", "f.yaml: control characters are not allowed (value: 0)"},
		{"- a\n", "f.yaml: line 1: seq does not belong here"},
	} {
		var s shape
		err := yaml.Load([]byte(tt.text), &s, yaml.WithKnownFields())
		if err == nil {
			t.Errorf("%q: no error", tt.text)
			continue
		}
		if got := Explain(fmt.Errorf("f.yaml: %w", err)); got != tt.want {
			t.Errorf("%q:\n got %s\nwant %s", tt.text, got, tt.want)
		}
	}
	if got := Explain(os.ErrNotExist); got != os.ErrNotExist.Error() {
		t.Errorf("another error: %q", got)
	}
}
