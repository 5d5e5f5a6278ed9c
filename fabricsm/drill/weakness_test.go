package drill

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWeakStaysHere: nothing but drills and tests imports what lacks a control, or has a simulated device pretend.
func TestWeakStaysHere(t *testing.T) {
	const root = "../.."
	word := regexp.MustCompile(`portcullis/fabricsm/drill/weak"|\bPretendsEnforcement\b`)
	may := []string{"fabricsm/drill/", "fabricsm/sim/"}
	seen := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		seen++
		for _, dir := range may {
			if strings.HasPrefix(filepath.ToSlash(rel), dir) {
				return nil
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if found := word.Find(text); found != nil {
			t.Errorf("%s says %s: only drills switch controls off", rel, found)
		}
		return nil
	})
	if err != nil || seen < 100 {
		t.Fatalf("looked at %d files: %v", seen, err)
	}
}
