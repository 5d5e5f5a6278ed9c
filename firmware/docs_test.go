package firmware_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"portcullis/firmware"
	"portcullis/firmware/policy"
)

// TestDocs holds the codes of docs/understand/firmware.md to those of the code, which are
// read out of its source.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../docs/understand/firmware.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|")
	documented := map[string][]string{}
	verdicts, wanted, ok := strings.Cut(string(page), "## Policy")
	if !ok {
		t.Fatal("docs/understand/firmware.md has no section Policy")
	}
	for part, text := range map[string]string{"verdict.go": verdicts, "policy/policy.go": wanted} {
		for _, m := range row.FindAllStringSubmatch(text, -1) {
			documented[part] = append(documented[part], m[1])
		}
		source, err := os.ReadFile(part)
		if err != nil {
			t.Fatal(err)
		}
		codes := []string{}
		for _, m := range regexp.MustCompile(`\bCode += "([a-z-]+)"`).FindAllStringSubmatch(string(source), -1) {
			codes = append(codes, m[1])
		}
		slices.Sort(codes)
		slices.Sort(documented[part])
		if !slices.Equal(codes, documented[part]) {
			t.Errorf("%s has the codes %v, and docs/understand/firmware.md %v", part, codes, documented[part])
		}
	}
	if !slices.Contains(documented["verdict.go"], string(firmware.CodeKeyDiffers)) || !slices.Contains(documented["policy/policy.go"], string(policy.BelowFloor)) {
		t.Errorf("codes were not found: %v", documented)
	}
}
