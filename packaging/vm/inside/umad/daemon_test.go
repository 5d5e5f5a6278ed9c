//go:build vm

package umad_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds each wait of these tests: emulated machines are slow, some of them very.
const patience = 40 * time.Second

// daemon is a program that runs beside a test, and what it wrote.
type daemon struct {
	t     testing.TB
	cmd   *exec.Cmd
	ended chan struct{}

	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{} // closed at the next output
}

// start starts a program that is killed at the end of the test, if it still runs. Its output is shown if the test failed.
func start(t testing.TB, cmd *exec.Cmd) *daemon {
	t.Helper()
	d := &daemon{t: t, cmd: cmd, ended: make(chan struct{}), changed: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = d
	}
	cmd.Stderr = d
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(d.ended)
	}()
	t.Cleanup(func() {
		d.signal(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("%s:\n%s", strings.Join(cmd.Args, " "), last(d.output(), 6000))
		}
	})
	return d
}

// program starts a program by its name and arguments.
func program(t testing.TB, name string, args ...string) *daemon {
	t.Helper()
	return start(t, exec.Command(name, args...))
}

func (d *daemon) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text.Write(p)
	close(d.changed)
	d.changed = make(chan struct{})
	return len(p), nil
}

func (d *daemon) output() string {
	text, _ := d.look()
	return text
}

// look returns the output until now, and a channel that is closed at the next.
func (d *daemon) look() (string, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String(), d.changed
}

// mark is a place in the output of a program.
type mark int

// now returns the place that the output has come to.
func (d *daemon) now() mark { return mark(len(d.output())) }

// until waits until the output behind a place satisfies a condition, and returns that output.
func (d *daemon) until(from mark, what string, holds func(string) bool) string {
	d.t.Helper()
	late := time.After(patience)
	for over := false; ; {
		text, changed := d.look()
		if text = text[from:]; holds(text) {
			return text
		}
		if over {
			d.t.Fatalf("%s ended without %s:\n%s", d.cmd.Args[0], what, last(text, 4000))
		}
		select {
		case <-changed:
		case <-d.ended:
			over = true
		case <-late:
			d.t.Fatalf("after %v %s has not shown %s:\n%s", patience, d.cmd.Args[0], what, last(text, 4000))
		}
	}
}

// says waits until the output behind a place has a text.
func (d *daemon) says(from mark, text string) string {
	d.t.Helper()
	return d.until(from, text, func(out string) bool { return strings.Contains(out, text) })
}

// signal sends a signal that ends the program, and waits for the end.
func (d *daemon) signal(s os.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.t.Error(err)
	}
	d.wait()
}

// wait waits until the program ended.
func (d *daemon) wait() {
	d.t.Helper()
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.t.Errorf("%s did not end within %v", d.cmd.Args[0], patience)
	}
}

// last returns the end of a text.
func last(text string, n int) string {
	if len(text) > n {
		return "... " + text[len(text)-n:]
	}
	return text
}
