package satest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

const (
	// upTimeout bounds the bring-up of a small fabric on a busy machine.
	upTimeout = 2 * time.Minute
	glance    = 10 * time.Millisecond
)

// Manager is a Subnet Manager that has brought a fabric up, and answers.
type Manager struct {
	Name string

	cmd  *exec.Cmd
	read sync.WaitGroup

	mu   sync.Mutex
	said bytes.Buffer
}

// Write implements io.Writer: it stores the output of the process.
func (m *Manager) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.said.Write(p)
}

// Said returns the output of the process.
func (m *Manager) Said() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.said.String()
}

// PID is the number of the process.
func (m *Manager) PID() int { return m.cmd.Process.Pid }

// Stop ends the process as an administrator would.
func (m *Manager) Stop() error {
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop %s: %w", m.Name, err)
	}
	m.read.Wait()
	err := m.cmd.Wait()
	if s, ok := m.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() && s.Signal() == syscall.SIGTERM {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", m.Name, err, m.tail())
	}
	return nil
}

func (m *Manager) tail() string {
	s := strings.TrimSpace(m.Said())
	return s[max(0, len(s)-1000):]
}

// OpenSM describes how OpenSM is started.
type OpenSM struct {
	Preload    Preload // empty: one MAD of every answer
	Partitions string  // file; empty: all ports are in one partition
	Options    string  // lines of opensm.conf
}

// Start runs OpenSM at the host "sm" of a lab until the fabric is up.
func (o *OpenSM) Start(ctx context.Context, lab *ibsimlab.Lab) (*Manager, error) {
	return o.StartOn(ctx, lab.Client())
}

// StartOn is Start on any simulator that speaks ibsim's protocol.
func (o *OpenSM) StartOn(ctx context.Context, fabric ibsimlab.Client) (*Manager, error) {
	log, conf := filepath.Join(fabric.Dir, "osm.log"), filepath.Join(fabric.Dir, "opensm.conf")
	if err := os.WriteFile(conf, []byte(o.Options), 0o600); err != nil {
		return nil, fmt.Errorf("write opensm.conf: %w", err)
	}
	// The log of an earlier run must not count for this one.
	if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove old log: %w", err)
	}
	args := []string{"-F", conf, "-f", log, "-e", "-d2", "-s", "0"}
	if o.Partitions != "" {
		args = append(args, "-P", o.Partitions)
	}
	cmd, err := fabric.Command(context.WithoutCancel(ctx), "sm", "opensm", args...)
	if err != nil {
		return nil, err
	}
	o.Preload.Apply(cmd)
	m := &Manager{Name: "OpenSM", cmd: cmd}
	cmd.Stdout, cmd.Stderr = m, m
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start opensm: %w", err)
	}
	return m.await(ctx, func() (bool, error) {
		data, err := os.ReadFile(log)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return bytes.Contains(data, []byte("SUBNET UP")), err
	})
}

// Portcullis describes how portcullisd is started.
type Portcullis struct {
	Program    string // its path
	Partitions string // file, of OpenSM's form; empty: no ports may communicate
	Args       []string
}

// Start runs "portcullisd sm" at the host "sm" of a lab until the fabric is settled.
func (o *Portcullis) Start(ctx context.Context, lab *ibsimlab.Lab) (*Manager, error) {
	return o.StartOn(ctx, lab.Client())
}

// StartOn is Start on any simulator that speaks ibsim's protocol.
func (o *Portcullis) StartOn(ctx context.Context, fabric ibsimlab.Client) (*Manager, error) {
	args := []string{"sm", "--port", "ibsim:" + fabric.Socket + "/sm", "--json", "--enforcement", "accepted"}
	if o.Partitions != "" {
		args = append(args, "--partitions", o.Partitions)
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), o.Program, append(args, o.Args...)...)
	cmd.Dir = fabric.Dir
	m := &Manager{Name: "Portcullis", cmd: cmd}
	cmd.Stderr = m
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("read portcullisd: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start portcullisd: %w", err)
	}
	settled, ended := make(chan struct{}), make(chan struct{})
	m.read.Go(func() {
		defer close(ended)
		m.follow(out, settled)
	})
	return m.await(ctx, func() (bool, error) {
		select {
		case <-settled:
			return true, nil
		case <-ended:
			return false, errors.New("it has ended")
		default:
			return false, nil
		}
	})
}

// follow closes settled at the first event of that name.
func (m *Manager) follow(out io.Reader, settled chan<- struct{}) {
	lines := bufio.NewScanner(out)
	for first := true; lines.Scan(); {
		_, _ = m.Write(append(lines.Bytes(), '\n'))
		var l struct {
			Event string `json:"event"`
		}
		if json.Unmarshal(lines.Bytes(), &l) == nil && l.Event == "settled" && first {
			first = false
			close(settled)
		}
	}
}

// await waits until the fabric is up, or ends the process.
func (m *Manager) await(ctx context.Context, up func() (bool, error)) (*Manager, error) {
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		done, err := up()
		if done {
			return m, nil
		}
		select {
		case <-ctx.Done():
			err = errors.Join(err, context.Cause(ctx))
		case <-tick.C:
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s did not bring the fabric up: %w: %s", m.Name, err, m.tail()), m.Stop())
		}
	}
}
