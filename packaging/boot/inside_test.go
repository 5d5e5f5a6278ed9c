//go:build boot

package boot

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	service = "portcullisd.service"
	agent   = "portcullis-agent.service"
)

// inside tries the units, in an order: each step finds what the one before left.
func inside(t *testing.T) {
	for _, step := range []struct {
		name string
		try  func(t *testing.T)
	}{
		{"Install", install},
		{"ServiceStarts", serviceStarts},
		{"AgentWithoutConfiguration", agentWithoutConfiguration},
		{"AgentUnconfigured", agentUnconfigured},
		{"AgentWithoutAdapter", agentWithoutAdapter},
		{"AgentWithoutTPM", agentWithoutTPM},
		{"AgentDoctor", agentDoctor},
		{"AgentDiskFull", agentDiskFull},
		{"AgentProvisions", agentProvisions},
		{"ServiceStops", serviceStops},
	} {
		if !t.Run(step.name, step.try) {
			t.Logf("the journal:\n%s", try(t, "journalctl", "--no-pager", "--lines=60").out)
			return
		}
	}
}

// ended is how a program ended.
type ended struct {
	out, all string // standard output, and both streams
	code     int
}

func try(t testing.TB, name string, args ...string) ended {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	e := ended{out: stdout.String(), all: stdout.String() + stderr.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		e.code = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return e
}

// do runs a program that must succeed, and returns its standard output.
func do(t testing.TB, name string, args ...string) string {
	t.Helper()
	e := try(t, name, args...)
	if e.code != 0 {
		t.Fatalf("%s %s: exit %d\n%s", name, strings.Join(args, " "), e.code, e.all)
	}
	return e.out
}

// is returns properties of a unit, "KEY=value" by key.
func is(t testing.TB, unit string) map[string]string {
	t.Helper()
	m := map[string]string{}
	for line := range strings.Lines(do(t, "systemctl", "show", unit)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		m[key] = value
	}
	return m
}

// want compares some properties of a unit.
func want(t testing.TB, unit string, pairs ...string) {
	t.Helper()
	got := is(t, unit)
	for _, p := range pairs {
		if key, value, _ := strings.Cut(p, "="); got[key] != value {
			t.Errorf("%s: %s is %q, want %q", unit, key, got[key], value)
		}
	}
	if t.Failed() {
		t.Fatal(do(t, "journalctl", "--no-pager", "--lines=30", "--unit="+unit))
	}
}

// await waits until a condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(90 * time.Second)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("in vain: %s", what)
		}
	}
}

// fails starts a unit again. The unit must not start, and the journal must say why.
func fails(t *testing.T, unit string, why ...string) {
	t.Helper()
	do(t, "systemctl", "stop", unit)
	do(t, "systemctl", "reset-failed")
	if e := try(t, "systemctl", "start", unit); e.code == 0 {
		t.Fatalf("%s starts", unit)
	}
	noted(t, unit, why...)
}

// noted waits until the journal has all this of the last run of a unit.
func noted(t testing.TB, unit string, parts ...string) {
	t.Helper()
	last := is(t, unit)
	run, pid := last["InvocationID"], last["ExecMainPID"]
	for _, p := range parts {
		await(t, "the journal of "+unit+" says "+p, func() bool {
			// The lines of the program, and those of systemd about it. Of a program that ends at once the journal may find
			// no more than the number of its process.
			return strings.Contains(do(t, "journalctl", "--no-pager", "--output=cat", "_SYSTEMD_INVOCATION_ID="+run, "+", "INVOCATION_ID="+run, "+", "_PID="+pid), p)
		})
	}
}

func says(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("it does not say %q:\n%s", p, text)
		}
	}
}

func put(t testing.TB, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

// install has dpkg install all packages into the running system.
func install(t *testing.T) {
	for _, dir := range []string{"info", "updates", "triggers"} {
		must(t, os.MkdirAll("/var/lib/dpkg/"+dir, 0o755))
	}
	put(t, "/var/lib/dpkg/status", "")
	put(t, "/etc/hosts", "127.0.0.1 localhost\n")
	debs, err := filepath.Glob("/dist/*.deb")
	must(t, err)
	do(t, "dpkg", append([]string{"--force-depends", "--log=/dev/null", "--install"}, debs...)...)
	do(t, "getent", "passwd", "portcullis", "portcullis-agent")
	for _, unit := range []string{service, agent} {
		want(t, unit, "LoadState=loaded", "UnitFileState=disabled", "ActiveState=inactive")
	}
}
