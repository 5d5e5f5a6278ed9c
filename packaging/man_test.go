package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"portcullis/packaging/parttest"
)

func TestManualPages(t *testing.T) {
	mandoc := parttest.Program(t, "mandoc")
	pages, err := filepath.Glob("man/*.[1-8]")
	if err != nil || len(pages) == 0 {
		t.Fatalf("manual pages: %v, %v", pages, err)
	}
	for _, page := range pages {
		if out, err := exec.Command(mandoc, "-T", "lint", "-W", "warning", page).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", page, err, out)
		}
	}
}

// TestEveryProgramHasAManualPage looks in the sections of commands.
func TestEveryProgramHasAManualPage(t *testing.T) {
	for _, program := range programs {
		if pages, _ := filepath.Glob("man/" + program + ".[18]"); len(pages) != 1 {
			t.Errorf("%s has the manual pages %q, want one", program, pages)
		}
	}
}

// TestConfigurationManual compares the keys of the reference configuration with
// those that portcullisd.yaml(5) explains.
func TestConfigurationManual(t *testing.T) {
	reference, err := os.ReadFile("../cmd/portcullisd/config/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := yaml.Load(reference, &tree); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	leaves("", tree, keys)

	page, err := os.ReadFile("man/portcullisd.yaml.5")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	for _, item := range regexp.MustCompile(`(?m)^\.It Ic (.*)$`).FindAllStringSubmatch(string(page), -1) {
		for word := range strings.FieldsSeq(item[1]) {
			if word != "," && word != "Ic" {
				explained[word] = true
			}
		}
	}
	for key := range keys {
		if !explained[key] {
			t.Errorf("portcullisd.yaml(5) does not explain %s", key)
		}
	}
	for key := range explained {
		if !keys[key] {
			t.Errorf("portcullisd.yaml(5) explains %s, which is not in the reference configuration", key)
		}
	}
}

// leaves collects the paths of all values that are not mappings.
func leaves(prefix string, tree map[string]any, into map[string]bool) {
	for key, value := range tree {
		if below, ok := value.(map[string]any); ok {
			leaves(prefix+key+".", below, into)
			continue
		}
		into[prefix+key] = true
	}
}
