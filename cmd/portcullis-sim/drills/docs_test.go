package drills_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/cmd/portcullis-sim/drills"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/drill/result"
	"portcullis/fabricsm/drill/threats"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/reference/drills.md")

// TestDocs compares the tables of docs/reference/drills.md with the drills. Rewrite them with
// -update.
func TestDocs(t *testing.T) {
	const file = "../../../docs/reference/drills.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, table := range map[string]string{"drills": drillTable(), "controls": controlTable(), "sample": sample(t)} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, ok := strings.Cut(text, begin)
		have, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("%s lacks %q or %q", file, begin, end)
		}
		if *update {
			text = before + begin + table + end + after
			continue
		}
		if d := cmp.Diff(have, table); d != "" {
			t.Errorf("%s differs from the %s; run go test ./cmd/portcullis-sim/drills -run TestDocs -update (-documented +is):\n%s", file, name, d)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func drillTable() string {
	var b strings.Builder
	b.WriteString("| Threat | What the attacker does | Fails without | Cannot be played before there is |\n|---|---|---|---|\n")
	for _, d := range drills.All() {
		var carriers []string
		for _, c := range drills.Controls() {
			if slices.Contains(c.Drills, d.ID) {
				carriers = append(carriers, "`"+string(c.Name)+"`")
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", d.ID, d.Threat, strings.Join(carriers, ", "), d.Needs)
	}
	return b.String()
}

func controlTable() string {
	var b strings.Builder
	b.WriteString("| Control | What it is | Drills it carries |\n|---|---|---|\n")
	for _, c := range drills.Controls() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Name, c.What, strings.Join(c.Drills, ", "))
	}
	return b.String()
}

// sample returns the full report of a drill.
func sample(t *testing.T) string {
	t.Helper()
	picked, err := threats.Pick(drills.All(), []string{"T14"})
	if err != nil {
		t.Fatal(err)
	}
	r := result.Report{Seed: 1}
	r.Add(drill.Run(picked[0], drill.Options{Seed: 1}))
	var b strings.Builder
	b.WriteString("```\n$ portcullis-sim drill T14\n")
	if err := r.WriteLong(&b); err != nil {
		t.Fatal(err)
	}
	b.WriteString("```\n")
	return regexp.MustCompile(`of \d+ packets`).ReplaceAllString(b.String(), "of 108 packets") // which changes with the manager
}
