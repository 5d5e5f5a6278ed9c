package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"portcullis/api/client"
	"portcullis/packaging/testenv"
)

// patience bounds every wait of these tests.
const patience = 60 * time.Second

// process is one portcullisd process of a test. It is stopped, and must end well, when the test ends.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	states chan string  // what systemd receives, a state each
	status atomic.Value // the last STATUS of them, a string
	lines  *lines
	ended  chan error
}

// lines collects output that is written while the test reads it.
type lines struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (l *lines) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.buf.Write(p) }

func (l *lines) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.buf.String() }

// install makes a fresh installation on a free port and returns its directory.
func install(t testing.TB, options ...string) (dir, address string) {
	t.Helper()
	address = testenv.Address(t)
	dir = filepath.Join(t.TempDir(), "etc")
	args := append([]string{"init", "--dir", dir, "--names", "127.0.0.1", "--listen", address, "--state-dir", filepath.Join(t.TempDir(), "state"), "--profile", "general"}, options...)
	if out, err := exec.Command("portcullisd", args...).CombinedOutput(); err != nil {
		t.Fatalf("init: %v\n%s", err, out)
	}
	return dir, address
}

// start runs portcullisd from an installation.
func start(t testing.TB, dir string, env ...string) *process {
	t.Helper()
	d := launch(t, exec.Command("portcullisd", "--config", filepath.Join(dir, "portcullisd.yaml")), env...)
	d.await("READY=1")
	return d
}

func launch(t testing.TB, cmd *exec.Cmd, env ...string) *process {
	t.Helper()
	d := &process{t: t, cmd: cmd, states: make(chan string, 1000), lines: &lines{}, ended: make(chan error, 1)}
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	go d.listen(conn)
	cmd.Env = append(os.Environ(), append(env, "NOTIFY_SOCKET="+socket)...)
	cmd.Stderr = d.lines
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { d.ended <- cmd.Wait() }()
	t.Cleanup(func() {
		d.stop()
		conn.Close()
		if t.Failed() {
			t.Logf("output of portcullisd:\n%s", d.lines)
		}
	})
	return d
}

func (d *process) listen(conn net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		for s := bufio.NewScanner(strings.NewReader(string(buf[:n]))); s.Scan(); {
			if strings.HasPrefix(s.Text(), "STATUS=") {
				d.status.Store(s.Text())
			}
			d.states <- s.Text()
		}
	}
}

// await waits until systemd receives a state that begins with prefix.
func (d *process) await(prefix string) string {
	d.t.Helper()
	late := time.After(patience)
	for {
		select {
		case s := <-d.states:
			if strings.HasPrefix(s, prefix) {
				return s
			}
		case err := <-d.ended:
			d.ended <- err
			d.t.Fatalf("portcullisd ended (%v) before %s:\n%s", err, prefix, d.lines)
		case <-late:
			d.t.Fatalf("portcullisd did not tell %s:\n%s", prefix, d.lines)
		}
	}
}

// awaitStatus waits until the last STATUS that systemd received begins with prefix. It may have come before READY.
func (d *process) awaitStatus(prefix string) (status string) {
	d.t.Helper()
	eventually(d.t, prefix, func() (bool, string) {
		status, _ = d.status.Load().(string)
		return strings.HasPrefix(status, prefix), fmt.Sprintf("systemd was told %q\n%s", status, d.lines)
	})
	return status
}

// stop sends SIGTERM and requires exit code 0.
func (d *process) stop() {
	d.t.Helper()
	d.end(syscall.SIGTERM, 0)
}

// kill ends the process without notice, as a power cut would.
func (d *process) kill() {
	d.t.Helper()
	d.end(syscall.SIGKILL, -1)
}

func (d *process) end(sig os.Signal, want int) {
	d.t.Helper()
	if d.cmd.ProcessState != nil {
		return
	}
	if err := d.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		d.t.Error(err)
	}
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.t.Errorf("portcullisd does not end on %v", sig)
		return
	}
	if got := d.cmd.ProcessState.ExitCode(); got != want {
		d.t.Errorf("exit code %d after %v, want %d", got, sig, want)
	}
}

// operator returns a client with the token that init made.
func operator(t testing.TB, dir, address string) *client.Client {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(dir, "operator.token"))
	if err != nil {
		t.Fatal(err)
	}
	return withToken(t, dir, address, strings.TrimSpace(string(token)))
}

func withToken(t testing.TB, dir, address, token string) *client.Client {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(dir, "tls", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: "https://" + address, CA: pem, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// refused runs portcullisd, by a wrapper if one is named, which must end with exit code 1, and returns its output.
func refused(t *testing.T, dir string, wrapper ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	line := append(wrapper, "portcullisd", "--config", filepath.Join(dir, "portcullisd.yaml"))
	out, err := exec.CommandContext(ctx, line[0], line[1:]...).CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 1 {
		t.Fatalf("portcullisd: %v, want exit code 1:\n%s", err, out)
	}
	return string(out)
}

// eventually asks until cond holds. It is for what a service reports only when
// it is asked.
func eventually(t testing.TB, what string, cond func() (bool, string)) {
	t.Helper()
	eventuallyEach(t, 50*time.Millisecond, what, cond)
}

// eventuallyEach is eventually with the time from one question to the next: a question that starts a program costs more than
// what it waits for.
func eventuallyEach(t testing.TB, every time.Duration, what string, cond func() (bool, string)) {
	t.Helper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	late := time.After(patience)
	for {
		ok, state := cond()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s did not come about: %s", what, state)
		}
	}
}
