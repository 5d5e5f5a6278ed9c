//go:build vm

package machine

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Run starts a machine, waits until it ended, and reports each test in it as a subtest. tests are the names that must be there
// (Tests lists those of a test program). If the test program did not begin in time, the boot is tried once more. The
// machine's output is returned for further checks.
func Run(t *testing.T, spec Spec, tests []string) *Machine {
	t.Helper()
	if len(tests) == 0 {
		t.Fatalf("machine %s: no tests are expected of it, so none could fail", spec.Name)
	}
	m := Start(t, spec)
	if err := m.Until(MarkBegin, m.spec.BootLimit); err != nil {
		t.Logf("%v; the boot is tried once more. Its console:\n%s", err, tail(m.Console(), 60))
		m.Kill()
		m = Start(t, spec)
	}
	m.Report(t, tests)
	return m
}

// Report waits until the machine ended and reports each test in it as a subtest.
func (m *Machine) Report(t *testing.T, tests []string) {
	t.Helper()
	took, err := m.Wait()
	p := ParseProtocol(m.ProtocolText())
	name := m.spec.Name
	if err != nil {
		t.Errorf("machine %s: %v", name, err)
	}
	seen := map[string]Outcome{}
	for _, o := range p.Outcomes {
		seen[o.Name] = o
	}
	fmt.Fprintf(t.Output(), "machine %s: %.1f s, %.1f s of processors, %d tests\n", name, took.Seconds(), m.used.Seconds(), len(tests))
	for _, test := range tests {
		t.Run(strings.TrimPrefix(test, "Test"), func(t *testing.T) {
			o, ok := seen[test]
			if !ok {
				t.Fatalf("machine %s wrote no line for %s", name, test)
			}
			fmt.Fprintf(t.Output(), "%s %s (%s s in machine %s)\n%s", o.Result, o.Name, o.Seconds, name, o.Output)
			if o.Result != "PASS" {
				t.Errorf("%s in machine %s: %s", test, name, o.Result)
			}
		})
	}
	if p.Exit != 0 {
		t.Errorf("machine %s: the test program ended with %d (-1: not at all)", name, p.Exit)
	}
	if bits := p.Defects(); bits != 0 {
		t.Errorf("machine %s: the kernel is tainted by a defect: %#x", name, bits)
	}
	for _, line := range Warnings(m.Console()) {
		t.Errorf("machine %s: the kernel says %q", name, line)
	}
	if t.Failed() {
		t.Logf("console of machine %s:\n%s\nend of its protocol:\n%s", name, tail(m.Console(), 120), tail(m.ProtocolText(), 60))
	}
}

// Took returns how long the machine ran. It is zero before its end.
func (m *Machine) Took() time.Duration { return m.took }

// Matching returns the names that the expression, as -test.run takes it, selects.
func Matching(tests []string, expression string) []string {
	re := regexp.MustCompile(expression)
	var out []string
	for _, name := range tests {
		if re.MatchString(name) {
			out = append(out, name)
		}
	}
	return out
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
