package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/packaging/confpage/page"
	"portcullis/packaging/testenv"
)

func TestManualPages(t *testing.T) {
	mandoc := testenv.Program(t, "mandoc")
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

// TestConfigurationManual compares portcullisd.yaml(5) with what is written out of the reference configuration.
func TestConfigurationManual(t *testing.T) {
	reference, err := os.ReadFile("../cmd/portcullisd/config/default.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, err := page.Of(string(reference))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("man/portcullisd.yaml.5")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("run go run ./packaging/confpage (-want +got):\n%s", d)
	}
}
