package umad

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// DefaultTimeout is how long the kernel waits for the answer to a request when
// Options do not say.
const DefaultTimeout = 200 * time.Millisecond

// Options select the port to attach to, and the role.
type Options struct {
	Device string     // as in /sys/class/infiniband; empty leaves it to Dial
	Port   ib.PortNum // of the device; 0 leaves it to Dial

	// AsSM asks for the SMPs that others send to a subnet manager, not only
	// for answers to our own. It does not set the IsSM bit. A port has at most
	// one such program.
	AsSM bool

	// Timeout is how long the kernel waits for an answer, in whole milliseconds; 0 means DefaultTimeout. Later answers are
	// lost, so it must not be shorter than the caller's own timeout. A longer one only keeps dead requests in the kernel's
	// queues. The kernel does not repeat requests.
	Timeout time.Duration

	// Wait is how long Dial waits for a device of which the kernel shows only a
	// part, as it does while it registers one.
	Wait time.Duration

	// Agents are classes beyond the two of subnet management, for example
	// {Class: mad.ClassSubnAdm, Version: 2, ...}.
	Agents []Agent

	Sysfs string // where sysfs is mounted; empty means /sys
	Dev   string // where device files are; empty means /dev
}

// Port is an attachment to one port of an HCA. It implements transport.Port.
type Port struct {
	sys  system
	at   candidate
	issm issm

	path    string // of the device
	timeout time.Duration
	file    *os.File
	send    *sender
	recv    *receiver
	sa      *saLane // nil: it was not opened

	closeOnce sync.Once
	closed    chan struct{}
}

var _ transport.Port = (*Port)(nil)

// Dial attaches to a port. If Options leave it open, it chooses the port as libibumad does: the first port that is Active,
// in the order of device names and ports, or else the first that is Armed or Init.
//
// The errors it can return include *NoPortError, *ModuleError, *UnfinishedError, *OpenError and *RegisterError. It waits
// only for a device that is being registered, within the limits of Options and ctx.
func Dial(ctx context.Context, o Options) (*Port, error) { return dial(ctx, o, linux{}) }

func dial(ctx context.Context, o Options, sys system) (*Port, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	began := time.Now()
	for {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		p, err := attach(o, sys)
		unfinished, ok := errors.AsType[*UnfinishedError](err)
		if e, opening := errors.AsType[*OpenError](err); opening && errors.Is(e.Err, unix.ENOENT) {
			ok = true // udev has not come to it yet
		}
		waited := time.Since(began)
		if !ok || waited >= o.Wait {
			if unfinished != nil {
				unfinished.Waited = waited.Round(time.Millisecond)
			}
			return p, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(look, o.Wait-waited)):
		}
	}
}

// look is the interval at which Dial looks at a device that is being registered: sysfs sends no notification.
const look = 50 * time.Millisecond

func attach(o Options, sys system) (*Port, error) {
	at, err := tree(o.Sysfs).find(&o)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Dev, "infiniband")
	path := filepath.Join(dir, fmt.Sprintf("umad%d", at.number))
	fd, err := sys.open(path)
	if err != nil {
		return nil, &OpenError{Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	p := &Port{
		sys: sys, at: at, path: path, timeout: o.Timeout, file: file, closed: make(chan struct{}),
		issm: issm{path: filepath.Join(dir, fmt.Sprintf("issm%d", at.number)), fd: -1},
	}
	if p.send, p.recv, err = p.open(file, fd, append(subnetAgents(o.AsSM), o.Agents...)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return p, nil
}

// complete fills in defaults and refuses invalid options.
func (o *Options) complete() error {
	if o.Sysfs == "" {
		o.Sysfs = "/sys"
	}
	if o.Dev == "" {
		o.Dev = "/dev"
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Timeout < time.Millisecond || o.Timeout > time.Minute {
		return fmt.Errorf("kernel timeout %v: want 1ms to 1m", o.Timeout)
	}
	taken := map[mad.Class]bool{mad.ClassSubn: true, mad.ClassSubnDR: true}
	for _, a := range o.Agents {
		if taken[a.Class] {
			return fmt.Errorf("agent for class %v: there is one already", a.Class)
		}
		taken[a.Class] = true
		for _, m := range a.Methods {
			if m >= 128 {
				return fmt.Errorf("agent for class %v: takes %v, which is a response", a.Class, m)
			}
		}
	}
	return nil
}

// open makes both halves of the opened device file, for some agents.
func (p *Port) open(file *os.File, fd int, list []Agent) (*sender, *receiver, error) {
	at := func(err error) error { return fmt.Errorf("%s (%s port %d): %w", p.path, p.at.device, p.at.port, err) }
	f, known, err := register(p.sys, fd, list)
	if err != nil {
		return nil, nil, at(err)
	}
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, nil, at(err)
	}
	// A file that the poller cannot watch would block a thread in Receive, and
	// Close for ever.
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		return nil, nil, at(fmt.Errorf("wait for the device: %w", err))
	}
	return newSender(raw, f, known, p.timeout), newReceiver(file, raw, f), nil
}

// GUID is the port GUID of the port we sit on.
func (p *Port) GUID() ib.GUID { return p.at.guid }

// Device is the name of the HCA and the number of its port.
func (p *Port) Device() (string, ib.PortNum) { return p.at.device, p.at.port }

// Close detaches, which clears the IsSM bit and ends the agents, and wakes a
// blocked Receive. It is idempotent.
func (p *Port) Close() error {
	var err error
	p.closeOnce.Do(func() {
		close(p.closed)
		err = errors.Join(p.issm.end(), p.file.Close())
		if p.sa != nil {
			err = errors.Join(err, p.sa.file.Close())
		}
	})
	return err
}

// wrap distinguishes errors of a closed port from those of a removed device and others. A removed device is an I/O error
// from the kernel, and "not pollable" if the runtime has noticed it before.
func (p *Port) wrap(err error) error {
	select {
	case <-p.closed:
		return transport.ErrClosed
	default:
	}
	errno, ok := errors.AsType[unix.Errno](err)
	if ok && errno != unix.EIO && errno != unix.ENODEV && errno != unix.EPIPE {
		return fmt.Errorf("%s port %d: %w: %w", p.at.device, p.at.port, errno, transport.ErrLost)
	}
	return fmt.Errorf("%s port %d went away: %w", p.at.device, p.at.port, transport.ErrLost)
}
