package packaging

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const plan = "../docs/reference/hardware-test-plan.md"

var (
	planItem = regexp.MustCompile(`^\d+\. `)
	planRow  = regexp.MustCompile(`^\| [^|]+ \| [^|]+ \| [^|]+ \|$`)
	planMark = regexp.MustCompile(`\*Proven:\*|\*Needs silicon:\*`)
	planTest = regexp.MustCompile("`([a-z]+)/(Test\\w+)(?:/([^`]+))?`")
)

// TestPlanSaysHowFarEachStepIs wants a mark on each step of the hardware test plan: each numbered item, each row of a table of
// steps, each step or section without items. A line "*Needs silicon:* all steps" below the state of a section marks all that are in it.
func TestPlanSaysHowFarEachStepIs(t *testing.T) {
	text, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	for section := range strings.SplitSeq(string(text), "\n## ") {
		title, body, _ := strings.Cut(section, "\n")
		if !strings.Contains(body, "State: ") || strings.Contains(body, "*Needs silicon:* all steps") {
			continue
		}
		body, _, _ = strings.Cut(body, "\n### Results")
		steps := strings.Split(body, "\n### Step ")
		if len(steps) > 1 {
			steps = steps[1:] // what stands before is preparation
		}
		for _, step := range steps {
			for _, item := range marked(step) {
				if !planMark.MatchString(item) {
					t.Errorf("%s: no mark: add *Proven:* or *Needs silicon:* to %q", title, item)
				}
			}
		}
	}
}

// marked returns what needs a mark of its own in a step: its items and rows, or the whole step if it has neither.
func marked(step string) (items []string) {
	for line := range strings.Lines(step) {
		switch line = strings.TrimSuffix(line, "\n"); {
		case planItem.MatchString(line):
			items = append(items, line)
		case planRow.MatchString(line) && !strings.HasPrefix(line, "| do "):
			items = append(items, line)
		case strings.HasPrefix(line, "   ") && len(items) > 0:
			items[len(items)-1] += "\n" + line
		}
	}
	if len(items) == 0 && strings.TrimSpace(step) != "" {
		return []string{step}
	}
	return items
}

// TestPlanNamesTests looks for each test that the plan names, and for each part of one.
func TestPlanNamesTests(t *testing.T) {
	text, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	named := planTest.FindAllStringSubmatch(string(text), -1)
	if len(named) < 20 {
		t.Fatalf("%s names %d tests", plan, len(named))
	}
	for _, m := range named {
		files, err := filepath.Glob(filepath.Join("vm/inside", m[1], "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s names the lab %s, which is not in packaging/vm/inside", plan, m[1])
			continue
		}
		var code strings.Builder
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(b)
		}
		if !strings.Contains(code.String(), "\nfunc "+m[2]+"(t *testing.T)") {
			t.Errorf("%s names %s/%s, which is not there", plan, m[1], m[2])
		}
		if m[3] != "" && !strings.Contains(code.String(), `t.Run("`+m[3]+`"`) {
			t.Errorf("%s names part %q of %s/%s, which is not there", plan, m[3], m[1], m[2])
		}
	}
}
