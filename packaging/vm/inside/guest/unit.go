//go:build vm

package guest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// UnitLimit bounds each wait for a unit.
const UnitLimit = 2 * time.Minute

// Unit returns the properties of a unit.
func Unit(t testing.TB, unit string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for line := range strings.Lines(Do(t, "systemctl", "show", unit)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		m[key] = value
	}
	return m
}

// UnitHas compares some properties of a unit, given as "KEY=value".
func UnitHas(t testing.TB, unit string, pairs ...string) {
	t.Helper()
	got := Unit(t, unit)
	for _, p := range pairs {
		if key, value, _ := strings.Cut(p, "="); got[key] != value {
			t.Errorf("%s: %s is %q, want %q", unit, key, got[key], value)
		}
	}
	if t.Failed() {
		t.Fatal(Do(t, "journalctl", "--no-pager", "--lines=30", "--unit="+unit))
	}
}

// Journal returns what a unit's last run, and systemd of it, wrote.
func Journal(t testing.TB, unit string) string {
	t.Helper()
	run := strings.TrimSpace(Do(t, "systemctl", "show", "--property=InvocationID", "--value", unit))
	return Do(t, "journalctl", "--no-pager", "--output=cat", "_SYSTEMD_INVOCATION_ID="+run, "+", "INVOCATION_ID="+run)
}

// UnitSays waits until the journal of a unit's last run has a line with all parts, and returns the newest such line.
func UnitSays(t testing.TB, unit string, parts ...string) string {
	t.Helper()
	found, all := "", ""
	for deadline := time.Now().Add(UnitLimit); ; {
		asked := time.Now()
		all = Journal(t, unit)
		for line := range strings.Lines(all) {
			if Says(line, parts...) {
				found = strings.TrimSpace(line)
			}
		}
		if found != "" {
			return found
		}
		if time.Now().After(deadline) {
			t.Fatalf("the journal of %s has no line with %q:\n%s", unit, parts, all)
		}
		time.Sleep(Pause(time.Since(asked)))
	}
}

// Says reports whether text has all parts.
func Says(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}

// Want ends the test where text lacks one of the parts.
func Want(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Fatalf("it does not say %q:\n%s", p, text)
		}
	}
}

// Write writes a file, and the directories above it.
func Write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
