package fwctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
)

// caller carries one command to the firmware and its answer back.
type caller interface {
	rpc(ctx context.Context, r register.RPC) (register.Reply, error)
	close() error
}

// Device is an open way to one adapter's firmware. Commands go one at a time.
type Device struct {
	path   string
	mutex  sync.Mutex // held while a command is under way
	caller caller
}

func newDevice(path string, c caller) *Device { return &Device{path: path, caller: c} }

// Close ends it.
func (d *Device) Close() error { return d.caller.close() }

// String is the device node or socket.
func (d *Device) String() string { return d.path }

// Access reads or writes a register. data is the content of the request and has the length of the register, and so has the
// answer. An answer of the firmware that is not "ok" is a *register.Error.
func (d *Device) Access(ctx context.Context, id register.ID, method register.Method, data []byte) ([]byte, error) {
	access := register.Access{ID: id, Method: method, Data: data}
	in := access.Encode()
	defer clear(in) // a lock's key may be among it
	// Writes pass from the scope before this one, reads from this one on; the
	// kernel's driver looks at the command and not at the register.
	answer, err := d.command(ctx, access.String(), register.RPC{
		Scope: register.DebugReadOnly, In: in, Room: register.HeaderSize + len(data),
	})
	if err != nil {
		return nil, err
	}
	if len(answer) != len(data) {
		return nil, d.fail(access.String(), fmt.Errorf("%w: %d bytes, want %d", ErrLength, len(answer), len(data)))
	}
	return answer, nil
}

// VportContext asks the firmware what a port of this function is: its GUIDs and
// whether the host has queue pair 0 there.
func (d *Device) VportContext(ctx context.Context, port uint8) (register.VportContext, error) {
	q := register.VportQuery{Opcode: register.QueryHCAVportContext, Vport: register.Vport{Port: port}}
	size := register.VportContext{}.Size()
	answer, err := d.command(ctx, q.String(), register.RPC{
		Scope: register.Configuration, In: q.Encode(), Room: register.HeaderSize + size,
	})
	if err != nil {
		return register.VportContext{}, err
	}
	v, err := register.Decode[register.VportContext](answer)
	if err != nil {
		return v, d.fail(q.String(), err)
	}
	return v, nil
}

// PKeys asks the firmware for the P_Key table of a port.
func (d *Device) PKeys(ctx context.Context, port uint8) ([]ib.PKey, error) {
	q := register.VportQuery{
		Opcode: register.QueryHCAVportPKey, Vport: register.Vport{Port: port}, Index: register.WholeTable,
	}
	answer, err := d.command(ctx, q.String(), register.RPC{
		Scope: register.DebugReadOnly, In: q.Encode(), Room: register.HeaderSize + register.PKeyRoom(register.MaxPKeys),
	})
	if err != nil {
		return nil, err
	}
	keys, err := register.DecodePKeys(answer)
	if err != nil {
		return nil, d.fail(q.String(), err)
	}
	return keys, nil
}

// How often a busy firmware is asked again, and how long first: each time twice
// as long, some six seconds in all. Others may use the same firmware.
const (
	busyTries = 8
	busyWait  = 25 * time.Millisecond
)

// command sends a command until the firmware is not busy, and returns the data of its answer.
func (d *Device) command(ctx context.Context, what string, r register.RPC) ([]byte, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for try, wait := 1, busyWait; ; try, wait = try+1, 2*wait {
		data, err := d.once(ctx, what, r)
		if !errors.Is(err, register.ErrBusy) || try == busyTries {
			return data, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, d.fail(what, ctx.Err())
		}
	}
}

func (d *Device) once(ctx context.Context, what string, r register.RPC) ([]byte, error) {
	reply, err := d.caller.rpc(ctx, r)
	if err != nil {
		return nil, d.fail(what, err)
	}
	if reply.Errno != 0 {
		return nil, d.fail(what, unix.Errno(reply.Errno))
	}
	answer, err := register.DecodeAnswer(reply.Out)
	if err != nil {
		return nil, d.fail(what, err)
	}
	return answer.Data, answer.Err(d.path + ": " + what)
}

func (d *Device) fail(what string, err error) error { return &Error{Node: d.path, Op: what, Err: err} }

// Causes of errors, for errors.Is.
var (
	// ErrNotMLX5 is a device node of another kind of adapter.
	ErrNotMLX5 = errors.New("not an mlx5 adapter")
	// ErrLength is an answer that is not as long as the register.
	ErrLength = errors.New("the answer has another length than the register")
)

// Error is a command that did not reach the firmware, or whose answer did not
// come back.
type Error struct {
	Node string // device node or socket
	Op   string
	Err  error
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s: %v", e.Node, e.Op, e.Err)
	if hint := e.hint(); hint != "" {
		s += ": " + hint
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func (e *Error) hint() string {
	switch {
	case errors.Is(e.Err, unix.EBADMSG):
		return "the kernel's driver does not allow this command with this scope"
	case errors.Is(e.Err, unix.EMSGSIZE):
		return "the kernel's driver finds the command too short or too long"
	case errors.Is(e.Err, unix.ENODEV):
		return "the adapter was removed, for example because it is being reset"
	case errors.Is(e.Err, unix.EACCES), errors.Is(e.Err, unix.EPERM):
		return "run as root, outside of containers"
	case errors.Is(e.Err, unix.ENOTTY):
		return "it is not a device node of fwctl"
	case errors.Is(e.Err, unix.ENOENT), errors.Is(e.Err, unix.ENXIO):
		return "load the kernel module mlx5_fwctl (Linux 6.15 and later)"
	}
	return ""
}

// reason drops what the error carries already.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	if n, ok := errors.AsType[*net.OpError](err); ok {
		return n.Err
	}
	return err
}
