package alerts

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portcullis/packaging/testenv"
)

const (
	rulesFile = "../prometheus/portcullis.rules.yml"
	page      = "../../docs/operate/alerts.md"
)

var update = flag.Bool("update", false, "write the rules, their page and the dashboards")

// TestFilesAreThoseOfTheCode compares the committed files with the code; -update writes them.
func TestFilesAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	files := map[string]string{rulesFile: RulesFile(), page: Page()}
	for _, d := range Dashboards() {
		files[filepath.Join("../grafana", d.File+".json")] = d.JSON()
	}
	for file, want := range files {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not that of the code (%v): go test ./packaging/alerts -update", file, err)
		}
	}
}

// TestPromtoolAcceptsRules has Prometheus's own tool check the rules, and the example of the job.
func TestPromtoolAcceptsRules(t *testing.T) {
	t.Parallel()
	promtool := testenv.Program(t, "promtool")
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"check", "config", "--syntax-only", "../prometheus/scrape.yml"}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil || !strings.Contains(string(out), "SUCCESS") {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// TestEachAlertFires has promtool evaluate each alert with the values that it is about, and with healthy ones.
func TestEachAlertFires(t *testing.T) {
	t.Parallel()
	promtool := testenv.Program(t, "promtool")
	args := []string{"test", "rules"}
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	for _, g := range Groups() {
		for i := range g.Rules { // each alone: promtool evaluates all rules of a file in each test
			r := g.Rules[i]
			rules := write(r.Name+".yml", rulesOf([]Group{{Name: g.Name, Rules: []Rule{r}}}))
			args = append(args, write(r.Name+".test.yml", r.Tests(rules)))
		}
	}
	out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput()
	if n := strings.Count(string(out), "SUCCESS"); err != nil || n != len(args)-2 {
		t.Errorf("promtool test rules: %v, %d of %d alerts are as they should be\n%s", err, n, len(args)-2, out)
	}
}

var (
	camel   = regexp.MustCompile(`^([A-Z][a-zA-Z]*[a-z])$`)
	command = regexp.MustCompile("`portcullis (?:--socket PATH )?([a-z][a-z-]*(?: [a-z][a-z-]*)*)")
)

// TestRulesAreComplete: names are unique, and each alert says what it means and what to do, by commands that there are.
func TestRulesAreComplete(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../man/portcullis.1")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, g := range Groups() {
		for i := range g.Rules {
			r := &g.Rules[i]
			switch {
			case seen[r.Name] || !camel.MatchString(r.Name):
				t.Errorf("%s: want a name in camel case, once", r.Name)
			case r.Severity != Critical && r.Severity != Warning:
				t.Errorf("%s is of severity %q", r.Name, r.Severity)
			case r.Means == "" || len(r.Do) == 0 || !strings.HasSuffix(r.Means, "."):
				t.Errorf("%s does not say what it means and what to do", r.Name)
			case len(r.Fires) == 0 || len(r.Quiet) == 0 || r.Says == "":
				t.Errorf("%s has no tests", r.Name)
			}
			seen[r.Name] = true
			for _, m := range command.FindAllStringSubmatch(strings.Join(r.Do, " "), -1) {
				if !strings.Contains(string(manual), "Cm "+m[1]) && !strings.Contains(string(manual), m[1]+" ,") {
					t.Errorf("%s: portcullis(1) has no command %q", r.Name, m[1])
				}
			}
		}
	}
}
