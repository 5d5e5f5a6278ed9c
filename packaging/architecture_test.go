package packaging

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// section returns the text below a heading of docs/reference/packages.md.
func section(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/reference/packages.md")
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/reference/packages.md has no heading %q", heading)
	}
	text, _, _ := strings.Cut(below, "\n## ")
	return text
}

// TestArchitectureNamesPackages looks for every package in the map of
// docs/reference/packages.md: its folder with a slash, or a program's name.
func TestArchitectureNamesPackages(t *testing.T) {
	words := strings.FieldsFunc(section(t, "Packages"), func(r rune) bool { return strings.ContainsRune(" ,;\n`", r) })
	for _, p := range goList(t, "./...") {
		if forTests(p.ImportPath) && !within(p.ImportPath, ours+"/packaging") {
			continue
		}
		path := strings.TrimPrefix(p.ImportPath, ours+"/")
		tail := path
		for named := false; !named; {
			named = slices.Contains(words, tail+"/") || path == "cmd/"+tail && slices.Contains(words, tail)
			_, shorter, more := strings.Cut(tail, "/")
			if !named && !more {
				t.Errorf("docs/reference/packages.md, Packages: %s/ is not there: say in half a sentence what it does", path)
				break
			}
			tail = shorter
		}
	}
}

// TestArchitectureArrows compares the table of docs/reference/packages.md with the
// arrows that packages are held to. A row without names in its second column
// says it in words.
func TestArchitectureArrows(t *testing.T) {
	full := func(name string) string {
		for _, tree := range []string{"api", "attest", "firmware", "agent", "cmd", "packaging", "fabricsm"} {
			if within(name, tree) {
				return name
			}
		}
		return "fabricsm/" + name
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	names := func(text string) []string {
		found := []string{}
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			found = append(found, full(m[1]))
		}
		slices.Sort(found)
		return found
	}
	drawn := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| (`.*`) \\| (.*) \\|$").FindAllStringSubmatch(section(t, "Arrows"), -1) {
		may, _, _ := strings.Cut(row[2], ";")
		may, _, _ = strings.Cut(may, " but ")
		for _, from := range names(row[1]) {
			drawn[from] = names(may)
		}
	}
	held := map[string][]string{}
	for _, a := range arrows {
		may := slices.DeleteFunc(slices.Clone(a.may), func(tree string) bool { return tree == "" }) // everything
		slices.Sort(may)
		held[a.from] = may
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(held)), slices.Sorted(maps.Keys(drawn))); d != "" {
		t.Errorf("rows of the table (-arrows_test.go +docs/reference/packages.md):\n%s", d)
	}
	if d := cmp.Diff(held, drawn, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("what may be imported (-arrows_test.go +docs/reference/packages.md):\n%s", d)
	}
}
