package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A program is linked once for all folders that want it, and again when its code has changed. What a test has stays as it was.
func TestBuild(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example\n\ngo 1.21\n")
	built := func(dir string) string {
		t.Helper()
		if err := buildIn(t.Context(), root, dir, []string{"cmd/says"}); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, "says")
	}
	says := func(program, want string) {
		t.Helper()
		if out, err := exec.Command(program).CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("%s: %q, %v, want %q", program, out, err, want)
		}
	}
	const code = "package main\n\nfunc main() { print(%) }\n"
	write("cmd/says/main.go", strings.Replace(code, "%", `"one"`, 1))
	first, second := built(t.TempDir()), built(t.TempDir())
	a, errA := os.Stat(first)
	b, errB := os.Stat(second)
	if errA != nil || errB != nil {
		t.Fatal(errA, errB)
	}
	if !os.SameFile(a, b) {
		t.Error("unchanged code was linked again")
	}
	write("cmd/says/main.go", strings.Replace(code, "%", `"two"`, 1))
	third := built(t.TempDir())
	says(first, "one")
	says(second, "one")
	says(third, "two")
	says(built(filepath.Dir(second)), "two") // in the place of one that was there
	says(first, "one")

	write("cmd/says/main.go", "package main\n\nfunc main() { absent() }\n")
	err := buildIn(t.Context(), root, t.TempDir(), []string{"cmd/says"})
	if err == nil || !strings.Contains(err.Error(), "build cmd/says: ") || !strings.Contains(err.Error(), "undefined: absent") {
		t.Errorf("code that does not compile: %v", err)
	}
}
