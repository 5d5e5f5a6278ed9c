package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// stopGrace is how long a program may take to end when asked.
const stopGrace = 10 * time.Second

// process is a program of the product that runs beside the story. It is in a
// process group of its own, so that Ctrl-C reaches the story alone and it can
// end everything in order; should the story be killed, the kernel ends it.
type process struct {
	name string
	log  string // path of what it printed
	cmd  *exec.Cmd
	done chan struct{}
	err  error // how it ended, valid once done is closed
}

// spawn starts a program with its output going to a file in dir.
func spawn(dir, name, program string, args ...string) (*process, error) {
	return spawnReading(nil, dir, name, program, args...)
}

// spawnReading is spawn with something to read, nil for nothing.
func spawnReading(stdin *os.File, dir, name, program string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.cmd = exec.Command(program, args...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if stdin != nil {
		p.cmd.Stdin = stdin
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go p.run(out, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// run owns the process. Its thread is locked because the kernel ties the
// parent-death signal to the thread that started the child.
func (p *process) run(out *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	defer out.Close()
	err := p.cmd.Start()
	started <- err
	if err == nil {
		p.err = p.cmd.Wait()
	}
}

// kill ends the process as a crash would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop asks the process to end and ends it if it does not. It is idempotent.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.kill()
	}
}

// tail is the end of what the process printed, for an error.
func (p *process) tail() string { return tail(p.log) }

func tail(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) > 8 {
		lines = lines[len(lines)-8:]
	}
	return strings.Join(lines, "\n  ")
}

// commandError is how a program that was run to its end refused.
type commandError struct {
	what   string
	status int
	said   string
}

func (e *commandError) Error() string {
	return fmt.Sprintf("%s ended with status %d: %s", e.what, e.status, e.said)
}

// call runs a program to its end and returns its standard output. A status
// other than 0 is a *commandError.
func call(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if err == nil {
		return out.Bytes(), nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	what := filepath.Base(program)
	if len(args) > 0 {
		what += " " + args[0]
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return out.Bytes(), &commandError{what: what, status: exit.ExitCode(), said: strings.TrimSpace(said.String() + out.String())}
	}
	return nil, fmt.Errorf("%s: %w", what, err)
}
