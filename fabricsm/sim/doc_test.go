package sim_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var testName = regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9]*)`")

// The page on the simulator names tests for all that it claims.
func TestPageNamesTests(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "understand", "simulator.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, pattern := range []string{"fabricsm/sim/*_test.go", "fabricsm/sim/*/*_test.go", "cmd/portcullis-sim/*_test.go"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(text)
		}
	}
	names := testName.FindAllStringSubmatch(string(page), -1)
	if len(names) < 50 {
		t.Errorf("the page names %d tests, want all that show what it claims", len(names))
	}
	for _, name := range names {
		if !strings.Contains(all.String(), "\nfunc "+name[1]+"(") {
			t.Errorf("the page names %s, which is no test of the simulator", name[1])
		}
	}
}
