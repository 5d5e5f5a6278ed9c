package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"portcullis/api/client"
	"portcullis/cmd/internal/program"
)

const (
	apiPort = 8443
	// diskSize is the size of the file system that holds the state of one instance.
	diskSize = "512m"
	// ballast is written at a time to fill it.
	ballast = 1 << 20
)

// instance is one portcullisd with its configuration, state, disk and network.
type instance struct {
	number  int
	program string
	dir     string // its log and configuration
	space   *namespace
	client  *client.Client
	process *program.Process // nil while it is down
	mounted bool
}

func (n *instance) name() string     { return fmt.Sprintf("portcullisd-%d", n.number+1) }
func (n *instance) config() string   { return filepath.Join(n.dir, n.name()+".yaml") }
func (n *instance) stateDir() string { return filepath.Join(n.dir, n.name()) }

// url returns where the API of the instance is.
func (n *instance) url() string { return fmt.Sprintf("https://%s:%d", n.space.address, apiPort) }

// mount mounts a file system of its own for the state.
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

// start starts the program.
func (n *instance) start() (err error) {
	n.process, err = program.Start(program.Options{
		Dir: n.dir, Name: n.name(), Path: n.program, Args: []string{"--config", n.config()}, Enter: n.space.enter,
	})
	return err
}

// died returns an error if the process ended by itself.
func (n *instance) died() error {
	if n.process == nil {
		return nil
	}
	return n.process.Ended()
}

// kill ends the process as a crash would.
func (n *instance) kill() {
	if n.process != nil {
		n.process.Kill()
		n.process = nil
	}
}

// stop ends the process as an operator would.
func (n *instance) stop() {
	if n.process != nil {
		n.process.Stop()
		n.process = nil
	}
}

// pause and resume stop the process and let it go on.
func (n *instance) pause() error  { return n.process.Signal(syscall.SIGSTOP) }
func (n *instance) resume() error { return n.process.Signal(syscall.SIGCONT) }

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
	if n.process != nil {
		_ = n.resume() // a process that is stopped takes no signal
		n.stop()
	}
	if !n.mounted {
		return nil
	}
	return unix.Unmount(n.stateDir(), unix.MNT_DETACH)
}

// awaitAnswer returns when the API answers a request.
func (n *instance) awaitAnswer(ctx context.Context) error {
	return program.Await(ctx, n.name()+" answers", func() (bool, error) {
		if err := n.died(); err != nil {
			return false, err
		}
		_, err := n.client.SM(ctx)
		return err == nil, nil
	})
}
