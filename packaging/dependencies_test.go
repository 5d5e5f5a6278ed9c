package packaging

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestDependenciesAreExplained holds docs/reference/dependencies.md to the direct
// dependencies in go.mod.
func TestDependenciesAreExplained(t *testing.T) {
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("read go.mod: %v", err)
	}
	var module struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/reference/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{}
	for _, r := range module.Require {
		if !r.Indirect {
			direct[r.Path] = true
			if !strings.Contains(string(page), "\n| `"+r.Path+"` |") {
				t.Errorf("docs/reference/dependencies.md has no row for %s", r.Path)
			}
		}
	}
	for row := range strings.SplitSeq(string(page), "\n| `") {
		if path, _, ok := strings.Cut(row, "` |"); ok && !direct[path] && strings.Contains(path, ".") {
			t.Errorf("docs/reference/dependencies.md explains %s, which is no direct dependency", path)
		}
	}
}
