// Package program starts the product's programs as processes, for the demonstration and
// for the runs that inject faults. No shipped program links it.
package program

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

const (
	// stopGrace is how long a program may take to end after SIGTERM.
	stopGrace = 10 * time.Second
	// poll is how often Await looks at its condition.
	poll = 50 * time.Millisecond
)

// Options describe a process.
type Options struct {
	Dir   string   // directory of its log
	Name  string   // its log is Dir/Name.log, to which output is appended
	Path  string   // the program
	Args  []string // without the program
	Stdin *os.File // nil: nothing to read

	// Enter runs on the operating system's thread that then starts the process, for example
	// to enter a namespace that the process inherits. The thread ends with the process. Nil:
	// nothing runs.
	Enter func() error
}

// Process is a program that runs beside its parent. It has a process group of its own, so
// that Ctrl-C reaches the parent alone, which then ends everything in order. When the parent
// is killed, the kernel kills the process.
type Process struct {
	log  string
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts a process.
func Start(o Options) (*Process, error) {
	p := &Process{log: filepath.Join(o.Dir, o.Name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	p.cmd = exec.Command(o.Path, o.Args...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if o.Stdin != nil {
		p.cmd.Stdin = o.Stdin
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go p.run(out, o.Enter, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	return p, nil
}

// run owns the process. Its thread is locked because the kernel ties the parent-death signal
// to the thread that started the child. A thread that has entered a namespace is never
// unlocked, so that it runs no other goroutine.
func (p *Process) run(out *os.File, enter func() error, started chan<- error) {
	runtime.LockOSThread()
	defer close(p.done)
	defer out.Close()
	if enter == nil {
		defer runtime.UnlockOSThread()
	} else if err := enter(); err != nil {
		started <- err
		return
	}
	err := p.cmd.Start()
	started <- err
	if err == nil {
		_ = p.cmd.Wait() // the log has the reason
	}
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended returns an error with the end of the log if the process has ended.
func (p *Process) Ended() error {
	select {
	case <-p.done:
		return fmt.Errorf("%s ended: %s", filepath.Base(p.cmd.Path), p.Tail())
	default:
		return nil
	}
}

// PID returns the process's number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log returns the path of the file that has the process's output.
func (p *Process) Log() string { return p.log }

// Signal sends a signal. A process that has ended takes none, which is no error.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to %s: %w", s, filepath.Base(p.cmd.Path), err)
	}
	return nil
}

// Kill ends the process as a crash would, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Stop sends SIGTERM and, if the process does not end in 10 s, SIGKILL. It is idempotent.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
	}
}

// Tail returns the last lines of the log, for an error.
func (p *Process) Tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) > 8 {
		lines = lines[len(lines)-8:]
	}
	return strings.Join(lines, "\n  ")
}

// StatusError is the error of a program that ended with a status other than 0.
type StatusError struct {
	What   string // the program and its first argument
	Status int
	Said   string // its output
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s ended with status %d: %s", e.What, e.Status, e.Said)
}

// Call runs a program to its end and returns its standard output. A status other than 0 is a
// *StatusError.
func Call(ctx context.Context, path string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, path, args...)
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
	what := filepath.Base(path)
	if len(args) > 0 {
		what += " " + args[0]
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return out.Bytes(), &StatusError{What: what, Status: exit.ExitCode(), Said: strings.TrimSpace(said.String() + out.String())}
	}
	return nil, fmt.Errorf("%s: %w", what, err)
}

// Await returns when cond reports true. It returns the error of cond, or an error that names
// what was awaited when ctx ends.
func Await(ctx context.Context, what string, cond func() (bool, error)) error {
	return AwaitEvery(ctx, poll, what, cond)
}

// AwaitEvery is Await, and looks at the condition once in each period.
func AwaitEvery(ctx context.Context, period time.Duration, what string, cond func() (bool, error)) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		if ok, err := cond(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, context.Cause(ctx))
		}
	}
}

// Find returns the absolute path of the directory that has all programs named. An empty dir
// means the directory of the running program.
func Find(dir string, names ...string) (string, error) {
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return "", fmt.Errorf("find the programs: %w", err)
		}
		dir = filepath.Dir(self)
	}
	for _, p := range names {
		if _, err := os.Stat(filepath.Join(dir, p)); err != nil {
			return "", fmt.Errorf("%s is not in %s: run \"make\" first, or name the directory with --programs", p, dir)
		}
	}
	return filepath.Abs(dir)
}
