package alerts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"portcullis/packaging/testenv"
)

// selector is a selector of an expression, as testdata/judge prints it.
type selector struct {
	Name     string
	Matchers map[string]string
	Range    bool
	Function string
}

// use is what an expression uses.
type use struct {
	Selectors []selector
	Labels    []string
}

// judging is held while the judge is built and runs: two calls of go run at a time would both compile Prometheus's parser, where
// the second of two in turn finds it compiled.
var judging sync.Mutex

// judged has Prometheus's parser read expressions.
func judged(t *testing.T, exprs []string) []use {
	t.Helper()
	judge := exec.CommandContext(t.Context(), testenv.Program(t, "go"), "run", "-modfile=../judges.mod", "./testdata/judge")
	var in, out, errs bytes.Buffer
	for _, e := range exprs {
		if err := json.NewEncoder(&in).Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	judge.Stdin, judge.Stdout, judge.Stderr = &in, &out, &errs
	judging.Lock()
	err := judge.Run()
	judging.Unlock()
	if text := errs.String(); strings.Contains(text, "dial tcp") || strings.Contains(text, "module lookup disabled") {
		testenv.Need(t, fmt.Errorf("the modules of packaging/judges.mod are not at hand: %s", text))
	}
	if err != nil {
		t.Fatalf("judge: %v\n%s", err, errs.String())
	}
	var all []use
	for dec := json.NewDecoder(&out); dec.More(); {
		var u use
		if err := dec.Decode(&u); err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	if len(all) != len(exprs) {
		t.Fatalf("%d of %d expressions were read", len(all), len(exprs))
	}
	return all
}

// ofScrape are the labels that the job adds to every series.
var ofScrape = []string{"fabric", "instance", "job"}

// has reports whether the result of an expression may have a label: one that it groups by, or of a selector where it does not group.
func (u *use) has(label string) bool {
	if len(u.Labels) > 0 {
		return slices.Contains(u.Labels, label)
	}
	return slices.ContainsFunc(u.Selectors, func(s selector) bool {
		m, _ := FindMetric(s.Name)
		return slices.Contains(m.Labels, label) || slices.Contains(ofScrape, label)
	})
}

// wrong returns what does not fit between an expression and the metrics that are exported.
func (u *use) wrong() (out []string) {
	known := slices.Clone(ofScrape)
	for _, s := range u.Selectors {
		m, ok := FindMetric(s.Name)
		if !ok {
			out = append(out, fmt.Sprintf("%s is not exported", s.Name))
			continue
		}
		for label := range s.Matchers {
			if !slices.Contains(m.Labels, label) && !slices.Contains(ofScrape, label) {
				out = append(out, fmt.Sprintf("%s has no label %s", s.Name, label))
			}
		}
		switch counts := s.Function == "rate" || s.Function == "increase"; {
		case m.Type == "gauge" && s.Range && counts:
			out = append(out, fmt.Sprintf("%s is a gauge, and %s is for counters", s.Name, s.Function))
		case m.Type != "gauge" && !(s.Range && counts):
			out = append(out, fmt.Sprintf("%s is a %s: its value means nothing without rate or increase", s.Name, m.Type))
		}
		known = append(known, m.Labels...)
	}
	for _, label := range u.Labels {
		if !slices.Contains(known, label) {
			out = append(out, "no metric of it has the label "+label)
		}
	}
	return out
}

// TestRulesUseWhatIsExported, of alerts and dashboards: each metric is one that the service exports, with its labels, and as what it is. The test of the
// service in cmd/portcullisd holds Exported to what it serves.
func TestRulesUseWhatIsExported(t *testing.T) {
	t.Parallel()
	var names, exprs []string
	used := map[string]bool{}
	for _, g := range Groups() {
		for i := range g.Rules {
			names, exprs = append(names, g.Rules[i].Name), append(exprs, g.Rules[i].Expr)
		}
	}
	for _, d := range Dashboards() {
		for _, e := range d.Expressions() {
			names, exprs = append(names, d.File), append(exprs, e)
		}
	}
	for i, u := range judged(t, exprs) {
		for _, wrong := range u.wrong() {
			t.Errorf("%s: %s", names[i], wrong)
		}
		for _, s := range u.Selectors {
			used[strings.TrimSuffix(s.Name, "_bucket")] = true
		}
	}
	text, err := os.ReadFile("../../docs/operate/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range Exported() {
		if short := strings.TrimPrefix(m.Name, "portcullis_"); !strings.Contains(string(text), "`"+short+"`") && !strings.Contains(string(text), "`"+short+"{") {
			t.Errorf("docs/operate/metrics.md lacks %s", m.Name)
		}
		if !used[m.Name] {
			t.Errorf("nothing uses %s", m.Name)
		}
	}
}

// TestWrongUseIsFound: the check above finds what it is there for.
func TestWrongUseIsFound(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		`portcullis_no_such > 0`:                                  "portcullis_no_such is not exported",
		`portcullis_sm_role{state="master"} == 0`:                 "portcullis_sm_role has no label state",
		`rate(portcullis_sm_role[5m])`:                            "portcullis_sm_role is a gauge, and rate is for counters",
		`portcullis_violations_total > 5`:                         "portcullis_violations_total is a counter: its value means nothing without rate or increase",
		`sum by (colour) (rate(portcullis_violations_total[5m]))`: "no metric of it has the label colour",
	}
	exprs := slices.Sorted(maps.Keys(cases))
	for i, u := range judged(t, exprs) {
		if got, want := u.wrong(), cases[exprs[i]]; len(got) != 1 || got[0] != want {
			t.Errorf("%s: %q, want %q", exprs[i], got, want)
		}
	}
}
