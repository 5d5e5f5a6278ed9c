//go:build vm

// Package guest has what test programs in the virtual machines share: running
// programs, waiting for a condition, and reading what the kernel shows.
package guest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"portcullis/packaging/vm/machine"
)

// Ended is how a program ended.
type Ended struct {
	Out  string // standard output
	All  string // standard output and standard error, as they came
	Code int    // exit status; -1 if a signal or the time limit ended it
}

// ProgramLimit bounds each program that Try and Do run.
const ProgramLimit = 4 * time.Minute

// Try runs a program and returns how it ended. A program that cannot be started ends the test.
func Try(t testing.TB, name string, args ...string) Ended {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ProgramLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, all strings.Builder
	cmd.Stdout, cmd.Stderr = tee{&out, &all}, &all
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	e := Ended{Out: out.String(), All: all.String()}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		e.Code = exit.ExitCode()
	} else if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return e
}

type tee struct{ a, b *strings.Builder }

func (w tee) Write(p []byte) (int, error) { w.a.Write(p); return w.b.Write(p) }

// Do runs a program that must succeed, and returns its standard output.
func Do(t testing.TB, name string, args ...string) string {
	t.Helper()
	e := Try(t, name, args...)
	if e.Code != 0 {
		t.Fatalf("%s %s: exit status %d\n%s", name, strings.Join(args, " "), e.Code, e.All)
	}
	return e.Out
}

// Eventually waits until condition returns true. If it does not within the limit, Eventually ends the test with the message
// what.
func Eventually(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; {
		asked := time.Now()
		if condition() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %s", limit, what)
		}
		time.Sleep(Pause(time.Since(asked)))
	}
}

// Pause returns how long a test waits until it asks again, after a question that took so long. Most questions start a program,
// which takes the processors from what is waited for: the longer one takes, the rarer it is asked.
func Pause(asked time.Duration) time.Duration {
	return min(max(3*asked, 50*time.Millisecond), time.Second)
}

// Read returns the content of a file of the kernel, without the end of the last line.
func Read(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// HandOut sends a file to the test that started the machine.
func HandOut(t testing.TB, name string, content []byte) {
	t.Helper()
	if _, err := fmt.Fprintln(os.Stdout, machine.FileLine(name, content)); err != nil {
		t.Fatal(err)
	}
}

// Ask has the test outside run the action that it offers under a name, and waits until it is done. A failed action ends the
// test.
func Ask(t testing.TB, what string) {
	t.Helper()
	port, err := os.OpenFile("/dev/virtio-ports/"+machine.ControlPort, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	if _, err := fmt.Fprintln(port, what); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(port).ReadString('\n')
	if err != nil {
		t.Fatalf("ask outside for %s: %v", what, err)
	}
	if got := strings.TrimSpace(answer); got != machine.Granted {
		t.Fatalf("outside, %s: %s", what, got)
	}
}

// Kernel tests that the kernel is the one that all labs boot, and that it has the CPUs that they need.
func Kernel(t testing.TB) {
	t.Helper()
	if n := runtime.NumCPU(); n != 2 {
		t.Errorf("%d CPUs, want 2: some defects need two", n)
	}
	release := Read(t, "/proc/sys/kernel/osrelease")
	if !strings.HasSuffix(release, "-cloud-amd64") {
		t.Errorf("the kernel is %s, want Debian's cloud kernel", release)
	}
	if line := Read(t, "/proc/cmdline"); !strings.Contains(line, "console=ttyS0") {
		t.Errorf("command line %q has no console", line)
	}
}

// Drive returns the name of the drive with a serial number, such as vdb.
func Drive(t testing.TB, serial string) string {
	t.Helper()
	files, err := filepath.Glob("/sys/block/vd*/serial")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if Read(t, name) == serial {
			return filepath.Base(filepath.Dir(name))
		}
	}
	t.Fatalf("no drive has the serial number %q", serial)
	return ""
}

// Exists reports whether a file is there.
func Exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
