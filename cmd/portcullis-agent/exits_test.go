package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/agent"
)

// TestExitCodes holds the classes of errors, --help, the manual page and the unit
// together: provisioning systems go by these numbers.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	var want, person []string
	for i, e := range agent.Exits() {
		if e.Code != i {
			t.Errorf("exit code %d is %d in the list", e.Code, i)
		}
		want = append(want, fmt.Sprintf("%2d  %s", e.Code, e.Meaning))
		if e.Person {
			person = append(person, fmt.Sprint(e.Code))
		}
	}
	if last := agent.Exits()[len(agent.Exits())-1].Code; last != int(agent.ClassReboot) {
		t.Errorf("the last class is %d, the last exit code %d", agent.ClassReboot, last)
	}

	var out, errs strings.Builder
	if code := run(t.Context(), []string{"--help"}, &out, &errs); code != 0 {
		t.Fatalf("--help: exit %d: %s", code, errs.String())
	}
	_, said, _ := strings.Cut(out.String(), "Exit codes:\n")
	said, _, _ = strings.Cut(said, "\n\n")
	if d := cmp.Diff(strings.Join(want, "\n"), strings.ReplaceAll("\n"+said, "\n  ", "\n")[1:]); d != "" {
		t.Errorf("--help (-list +help):\n%s", d)
	}

	page := text(t, "../../packaging/man/portcullis-agent.8")
	_, status, _ := strings.Cut(page, ".Sh EXIT STATUS\n")
	status, after, _ := strings.Cut(status, ".El\n")
	var manual []string
	for _, m := range regexp.MustCompile(`(?m)^\.It (\d+)\n([^.].*)\.$`).FindAllStringSubmatch(status, -1) {
		manual = append(manual, m[1]+"  "+m[2])
	}
	for i := range want {
		code, meaning, _ := strings.Cut(strings.TrimSpace(want[i]), "  ")
		want[i] = code + "  " + strings.ToUpper(meaning[:1]) + meaning[1:]
	}
	if d := cmp.Diff(want, manual); d != "" {
		t.Errorf("the manual page (-list +page):\n%s", d)
	}
	last := len(person) - 1
	if sentence := "After " + strings.Join(person[:last], ", ") + " and " + person[last] + " the unit is not started again"; !strings.Contains(after, sentence) {
		t.Errorf("the manual page does not say %q", sentence)
	}
	if line := "\nRestartPreventExitStatus=" + strings.Join(person, " ") + "\n"; !strings.Contains(text(t, "../../packaging/systemd/portcullis-agent.service"), line) {
		t.Errorf("the unit does not say %q", line)
	}
}

func text(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
