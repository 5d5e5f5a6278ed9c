package ibsimlab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// startTimeout bounds loading a netlist: 10,000 hosts take two seconds.
	startTimeout = 60 * time.Second
	// commandTimeout bounds one console command.
	commandTimeout = 10 * time.Second
	// stopTimeout is how long a simulator may take to obey "quit".
	stopTimeout = 3 * time.Second

	readyLine = "Network simulator ready"
	prompt    = "sim> "
)

// Options select the programs to start.
type Options struct {
	Netlist []byte // the fabric, in ibsim's netlist format

	// Dir is the scratch directory; it must exist. Empty means a new temporary
	// directory that Stop removes.
	Dir string

	// Socket is the base of the abstract socket names; empty means a name no
	// other lab uses.
	Socket string
}

// Lab is one running ibsim. Its methods may be called concurrently.
type Lab struct {
	socket  string
	dir     string
	ownsDir bool
	out     *transcript
	done    chan struct{} // closed when the simulator has ended

	commands sync.Mutex     // one console command at a time
	console  io.WriteCloser // its stdin, kept open: at end of file ibsim spins

	proc *os.Process
	err  error // how it ended; valid once done is closed
}

// Start writes the netlist, starts ibsim on it and waits until it is ready.
// ctx bounds the start only: the simulator ends with Stop, or with this process.
func Start(ctx context.Context, o Options) (*Lab, error) {
	program, err := Find("ibsim")
	if err != nil {
		return nil, err
	}
	l := &Lab{socket: o.Socket, dir: o.Dir, out: newTranscript(), done: make(chan struct{})}
	if l.dir == "" {
		if l.dir, err = os.MkdirTemp("", "ibsimlab-"); err != nil {
			return nil, fmt.Errorf("make scratch directory: %w", err)
		}
		l.ownsDir = true
	}
	if l.socket == "" {
		l.socket = "lab-" + uniqueSuffix(l.dir)
	}
	if err := l.start(ctx, program, o.Netlist); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

// uniqueSuffix makes a socket name from the process and the directory, which
// together are unique on a machine.
func uniqueSuffix(dir string) string {
	base := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, filepath.Base(dir))
	return fmt.Sprintf("%d-%s-%d", os.Getpid(), base, time.Now().UnixNano()%1e9)
}

func (l *Lab) start(ctx context.Context, program string, netlist []byte) error {
	path := filepath.Join(l.dir, "fabric.net")
	if err := os.WriteFile(path, netlist, 0o600); err != nil {
		close(l.done)
		return fmt.Errorf("write netlist: %w", err)
	}
	// Limits above ibsim's defaults, for fabrics of 10,000 hosts. -L is needed
	// even for small ones: without it ibsim 0.10 accepts forwarding blocks that
	// lie beyond its table.
	cmd := exec.Command(program, "-s", "-N", "24000", "-S", "4000", "-P", "160000", "-L", "49152", path)
	cmd.Dir = l.dir
	cmd.Env = append(os.Environ(), "IBSIM_SOCKNAME="+l.socket)
	cmd.Stdout, cmd.Stderr = l.out, l.out
	// A simulator whose console is at end of file burns a CPU for ever, so it
	// must not survive us.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		close(l.done)
		return fmt.Errorf("open console of ibsim: %w", err)
	}
	l.console = stdin
	started := make(chan error, 1)
	go l.run(cmd, started)
	if err := <-started; err != nil {
		return err
	}
	return l.waitReady(ctx)
}

// run owns the process. The thread is locked because the kernel ties the
// parent-death signal to the thread that started the child.
func (l *Lab) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(l.done)
	if err := cmd.Start(); err != nil {
		started <- fmt.Errorf("start ibsim: %w", err)
		return
	}
	l.proc = cmd.Process
	started <- nil
	l.err = cmd.Wait()
	l.out.close()
}

func (l *Lab) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ready := func(s string) bool { return strings.Contains(s, readyLine) && strings.Contains(s, prompt) }
	if _, err := l.out.wait(ctx, 0, ready); err != nil {
		return fmt.Errorf("ibsim did not become ready: %w; it said: %s", err, l.out.tail())
	}
	// The sockets are opened just after the prompt; a command that is answered
	// shows that the main loop runs.
	if _, err := l.Console("attached"); err != nil {
		return err
	}
	return nil
}

// Socket returns the base of the socket names: the value of IBSIM_SOCKNAME for clients.
func (l *Lab) Socket() string { return l.socket }

// Dir is the scratch directory.
func (l *Lab) Dir() string { return l.dir }

// PID is the process number of the simulator.
func (l *Lab) PID() int { return l.proc.Pid }

// Done is closed when the simulator has ended, for any reason.
func (l *Lab) Done() <-chan struct{} { return l.done }

// Transcript returns the output of the simulator so far.
func (l *Lab) Transcript() string { return l.out.String() }

// Console runs one console command, for example `unlink "h1"[1]`, and returns the output of the simulator. ibsim reads
// commands of at most 127 bytes.
func (l *Lab) Console(command string) (string, error) {
	if len(command) > 126 || strings.ContainsAny(command, "\n\x00") {
		return "", fmt.Errorf("ibsim console command %.40q: want one line of at most 126 bytes", command)
	}
	l.commands.Lock()
	defer l.commands.Unlock()
	from := l.out.len()
	if _, err := io.WriteString(l.console, command+"\n"); err != nil {
		return "", fmt.Errorf("ibsim console %q: %w", command, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	text, err := l.out.wait(ctx, from, answered)
	if err != nil {
		return "", fmt.Errorf("ibsim console %q: %w; it said: %s", command, err, l.out.tail())
	}
	answer, _, _ := strings.Cut(text, prompt)
	return answer, nil
}

// answered reports whether a command is done: ibsim prints one prompt after each. Its messages about clients that connect
// and disconnect may follow the prompt at once.
func answered(s string) bool { return strings.Contains(s, prompt) }

// Kill ends the simulator at once, as a crash would, and waits for its end.
// The scratch directory stays until Stop.
func (l *Lab) Kill() error {
	if err := l.proc.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill ibsim: %w", err)
	}
	<-l.done
	return nil
}

// Stop ends the simulator and removes a scratch directory that Start made. It
// is idempotent.
func (l *Lab) Stop() error {
	if l.proc != nil {
		l.quit()
	}
	if !l.ownsDir {
		return nil
	}
	if err := os.RemoveAll(l.dir); err != nil {
		return fmt.Errorf("remove scratch directory: %w", err)
	}
	return nil
}

func (l *Lab) quit() {
	// A write error only means that it has ended already.
	_, _ = io.WriteString(l.console, "quit\n")
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-l.done:
	case <-timer.C:
		_ = l.proc.Kill()
		<-l.done
	}
	_ = l.console.Close()
}
