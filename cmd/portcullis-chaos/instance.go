package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/api/client"
	"portcullis/cmd/internal/program"
	"portcullis/cmd/internal/slowsync"
	"portcullis/cmd/internal/wallclock"
)

const (
	apiPort    = 8443
	peerPort   = 2380 // between the members of the store
	clientPort = 2379 // of a member of the store
	// diskSize is the size of the file system that holds the state of one instance.
	diskSize = "512m"
	// ballast is written at a time to fill it.
	ballast = 1 << 20
)

// instance is one portcullisd with its configuration, state, disk and network.
type instance struct {
	number  int
	program string
	dir     string // its log, configuration and state are below
	space   *namespace
	client  *client.Client
	process atomic.Pointer[program.Process] // nil while it is down
	disk    *slowsync.Gate                  // of the processes that run, or ran last
	mounted bool
}

func (n *instance) name() string      { return fmt.Sprintf("portcullisd-%d", n.number+1) }
func (n *instance) configDir() string { return filepath.Join(n.dir, n.name()+".etc") }
func (n *instance) config() string    { return filepath.Join(n.configDir(), "portcullisd.yaml") }
func (n *instance) stateDir() string  { return filepath.Join(n.dir, n.name()) }

// url returns where a port of the instance is reached.
func (n *instance) url(port int) string { return fmt.Sprintf("https://%s:%d", n.space.address, port) }

// configure writes a configuration into a directory that holds nothing else.
func (n *instance) configure(text string) error {
	if err := os.RemoveAll(n.configDir()); err != nil {
		return err
	}
	if err := os.Mkdir(n.configDir(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(n.config(), []byte(text), 0o600)
}

// mount mounts an empty file system of its own for the state.
func (n *instance) mount() error {
	if err := os.MkdirAll(n.stateDir(), 0o700); err != nil {
		return err
	}
	if err := unix.Mount("portcullis-chaos", n.stateDir(), "tmpfs", 0, "mode=0700,size="+diskSize); err != nil {
		return fmt.Errorf("mount %s: %w", n.stateDir(), err)
	}
	n.mounted = true
	return nil
}

// unmount removes the file system with all that it holds.
func (n *instance) unmount() error {
	if !n.mounted {
		return nil
	}
	n.mounted = false
	return unix.Unmount(n.stateDir(), unix.MNT_DETACH)
}

// start starts the program.
func (n *instance) start() error {
	enter := func() (err error) {
		if err = n.space.enter(); err == nil {
			n.disk, err = slowsync.Install()
		}
		return err
	}
	p, err := program.Start(program.Options{
		Dir: n.dir, Name: n.name(), Path: n.program, Args: []string{"--config", n.config()}, Enter: enter,
	})
	if err == nil {
		n.process.Store(p)
	}
	return err
}

// died returns an error if the process ended by itself.
func (n *instance) died() error {
	p := n.process.Load()
	if p == nil {
		return nil
	}
	return p.Ended()
}

// kill ends the process as a crash would.
func (n *instance) kill() {
	if p := n.process.Swap(nil); p != nil {
		p.Kill()
	}
}

// stop ends the process as an operator would.
func (n *instance) stop() {
	if p := n.process.Swap(nil); p != nil {
		p.Stop()
	}
}

// part says which processes of an instance are meant.
type part string

const (
	whole   part = "all of"
	front   part = "the main process of"
	storage part = "the store of"
)

// signal sends a signal to processes of the instance, which must run.
func (n *instance) signal(to part, s syscall.Signal) error {
	pids, err := n.processes(to)
	if err != nil {
		return err
	}
	for _, p := range pids {
		if err := syscall.Kill(p, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %v to %s %s: %w", s, to, n.name(), err)
		}
	}
	return nil
}

// processes returns the numbers of processes of the instance, which must run.
func (n *instance) processes(of part) (pids []int, err error) {
	pid := n.process.Load().PID()
	if of != storage {
		pids = append(pids, pid)
	}
	if of == front {
		return pids, nil
	}
	below, err := children(pid)
	return append(pids, below...), err
}

// setClock has all processes of the instance see the time of day that much later than it is.
func (n *instance) setClock(off time.Duration) error {
	pids, err := n.processes(whole)
	if err != nil {
		return err
	}
	for _, p := range pids {
		err = errors.Join(err, wallclock.Set(p, off))
	}
	return err
}

func (n *instance) pause(p part) error  { return n.signal(p, syscall.SIGSTOP) }
func (n *instance) resume(p part) error { return n.signal(p, syscall.SIGCONT) }

// children returns the processes that a process started.
func children(parent int) (out []int, err error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended meanwhile
		}
		if pid, of, ok := parseStat(string(text)); ok && of == parent {
			out = append(out, pid)
		}
	}
	return out, nil
}

// parseStat returns a process's number and that of its parent from /proc/PID/stat: the
// number, the name in parentheses, which can hold any character, the state, the parent.
func parseStat(text string) (pid, parent int, ok bool) {
	head, tail := strings.Index(text, " ("), strings.LastIndex(text, ") ")
	if head < 0 || tail < head {
		return 0, 0, false
	}
	var state string
	if _, err := fmt.Sscan(text[:head], &pid); err != nil {
		return 0, 0, false
	}
	_, err := fmt.Sscan(text[tail+2:], &state, &parent)
	return pid, parent, err == nil
}

// fill fills the disk to the last byte, and free makes room again.
func (n *instance) fill() error {
	f, err := os.OpenFile(n.ballastFile(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, ballast)
	for size := len(block); size > 0; {
		_, err := f.Write(block[:size])
		switch {
		case errors.Is(err, unix.ENOSPC):
			size /= 2
		case err != nil:
			return err
		}
	}
	return nil
}

func (n *instance) free() error { return os.Remove(n.ballastFile()) }

func (n *instance) ballastFile() string { return filepath.Join(n.stateDir(), "ballast-of-chaos") }

// remove ends the process and removes its disk.
func (n *instance) remove() error {
	if n.process.Load() != nil {
		_ = n.resume(whole) // a process that is stopped does not end in order
		n.stop()
	}
	return n.unmount()
}

// awaitAnswer returns when the API answers a request.
func (n *instance) awaitAnswer(ctx context.Context) error {
	return program.Await(ctx, n.name()+" answers", func() (bool, error) {
		if err := n.died(); err != nil {
			return false, err
		}
		_, err := n.client.SM().Get(ctx)
		return err == nil, nil
	})
}
