//go:build vm

package selinux_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Domains of the lab's own module. They may do everything except the InfiniBand operations under test.
const (
	manager = "system_u:system_r:lab_sm_t:s0"
	tenant  = "system_u:system_r:lab_tenant_t:"
	other   = "system_u:system_r:lab_other_t:s0"
	rogue   = "system_u:system_r:lab_rogue_t:s0" // has a rule of its own to manage the subnet
)

// Domains of the reference policy.
const (
	services       = "system_u:system_r:initrc_t:s0" // where Debian's policy runs what has no domain, and this test
	unconfined     = "system_u:system_r:unconfined_t:s0"
	udev           = "system_u:system_r:udev_t:s0"
	modprobe       = "system_u:system_r:kmod_t:s0"
	modulesLoad    = "system_u:system_r:systemd_modules_load_t:s0"
	virtualMachine = "system_u:system_r:svirt_t:" // of libvirt
	container      = "system_u:system_r:container_t:"
)

// program is one of programs that runs in a domain.
type program struct {
	cmd   *exec.Cmd
	input io.Closer
	lines chan string
}

// limit bounds each wait for something that is to happen.
const limit = time.Minute

// start starts a program of programs in a context. It ends with the test at the latest.
func start(t testing.TB, context, name string, args ...string) *program {
	t.Helper()
	p := run(t, context, name, nil, args...)
	t.Cleanup(p.kill)
	return p
}

func (p *program) kill() {
	_ = p.input.Close()
	_ = p.cmd.Process.Kill()
}

// run starts a program that inherits files, and that goes on after the test.
func run(t testing.TB, context, name string, files []*os.File, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{cmd: exec.Command("runcon", append([]string{context, self}, args...)...), lines: make(chan string, 64)}
	p.cmd.ExtraFiles = files
	p.cmd.Env = append(os.Environ(), programVariable+"="+name)
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = p.cmd.Stdout
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		_ = p.cmd.Wait()
	}()
	return p
}

// line returns what the program writes next; "" at its end.
func (p *program) line(t testing.TB) string {
	t.Helper()
	select {
	case line := <-p.lines:
		return line
	case <-time.After(limit):
		t.Fatalf("%s wrote nothing within %v", p.cmd, limit)
		return ""
	}
}

// expect wants what the program writes next to contain a text.
func (p *program) expect(t testing.TB, text string) {
	t.Helper()
	if line := p.line(t); !strings.Contains(line, text) {
		t.Errorf("%s: %q, want %q", p.cmd, line, text)
	}
}

// end ends the standard input of a program, which ends the program.
func (p *program) end(t testing.TB) {
	t.Helper()
	if err := p.input.Close(); err != nil {
		t.Error(err)
	}
}

// try runs a program to its first line.
func try(t testing.TB, context, name string, args ...string) string {
	t.Helper()
	p := start(t, context, name, args...)
	line := p.line(t)
	_ = p.input.Close()
	return line
}
