package hcasim

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

var testName = regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")

// The page on cards names tests for all that it claims, and every trait.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/understand/cards.md")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, pattern := range []string{"*_test.go", "cardsocket/*_test.go", "../../../cmd/portcullis-sim/*_test.go"} {
		files, err := filepath.Glob(pattern)
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
	if len(names) < 30 {
		t.Errorf("the page names %d tests, want all that show what it claims", len(names))
	}
	for _, name := range names {
		if !strings.Contains(all.String(), "\nfunc "+name[1]+"(") {
			t.Errorf("the page names %s, which is no test of cards", name[1])
		}
	}
	for i := range reflect.TypeFor[Traits]().NumField() {
		if name := reflect.TypeFor[Traits]().Field(i).Name; !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page does not name the trait %s", name)
		}
	}
}
