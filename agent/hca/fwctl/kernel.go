package fwctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"portcullis/agent/hca/register"
)

// The ioctls of the interface: _IO(0x9A, n). Their arguments say their own size.
const (
	ioctlInfo = 0x9A00
	ioctlRPC  = 0x9A01
)

// infoArg is struct fwctl_info.
type infoArg struct {
	size, flags, outDeviceType, deviceDataLen uint32
	outDeviceData                             uint64 // address
}

// rpcArg is struct fwctl_rpc.
type rpcArg struct {
	size, scope, inLen, outLen uint32
	in, out                    uint64 // addresses
}

// deviceTypeMLX5 is what FWCTL_INFO calls the adapters that this product knows.
const deviceTypeMLX5 = 1

// ioctl calls a device with an argument that it may change; tests have their
// own kernel.
type ioctl func(fd uintptr, request uint32, arg unsafe.Pointer) error

func linux(fd uintptr, request uint32, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uintptr(request), uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// node is an open device node.
type node struct {
	file *os.File
	call ioctl
}

// Open opens a device node, for example /dev/fwctl/fwctl0, and makes sure that
// it is that of an mlx5 adapter.
func Open(path string) (*Device, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, &Error{Node: path, Op: "open", Err: reason(err)}
	}
	d, err := open(path, &node{f, linux})
	if err != nil {
		f.Close()
		return nil, err
	}
	return d, nil
}

func open(path string, n *node) (*Device, error) {
	arg := infoArg{size: uint32(unsafe.Sizeof(infoArg{}))}
	if err := n.ioctl(ioctlInfo, unsafe.Pointer(&arg)); err != nil {
		return nil, &Error{Node: path, Op: "ask what it is", Err: err}
	}
	if arg.outDeviceType != deviceTypeMLX5 {
		return nil, &Error{Node: path, Op: "ask what it is", Err: fmt.Errorf("%w: type %d", ErrNotMLX5, arg.outDeviceType)}
	}
	return newDevice(path, n), nil
}

// ioctl keeps the descriptor open while the kernel works.
func (n *node) ioctl(request uint32, arg unsafe.Pointer) error {
	raw, err := n.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = n.call(fd, request, arg) })
	return errors.Join(err, failed)
}

// rpc is FWCTL_RPC. The kernel bounds how long the firmware may take; a command
// that is under way cannot be taken back, so ctx counts before it only.
func (n *node) rpc(ctx context.Context, r register.RPC) (register.Reply, error) {
	if err := ctx.Err(); err != nil {
		return register.Reply{}, err
	}
	out := make([]byte, r.Room)
	var pinned runtime.Pinner // the argument holds addresses, which the collector does not see
	defer pinned.Unpin()
	pinned.Pin(unsafe.SliceData(r.In))
	pinned.Pin(unsafe.SliceData(out))
	arg := rpcArg{
		size: uint32(unsafe.Sizeof(rpcArg{})), scope: uint32(r.Scope), inLen: uint32(len(r.In)), outLen: uint32(len(out)),
		in:  uint64(uintptr(unsafe.Pointer(unsafe.SliceData(r.In)))),
		out: uint64(uintptr(unsafe.Pointer(unsafe.SliceData(out)))),
	}
	err := n.ioctl(ioctlRPC, unsafe.Pointer(&arg))
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return register.Reply{Errno: uint32(errno)}, nil
	}
	if err != nil {
		return register.Reply{}, err
	}
	if int64(arg.outLen) > int64(len(out)) {
		return register.Reply{}, fmt.Errorf("the kernel returned %d bytes, the buffer has %d", arg.outLen, len(out))
	}
	return register.Reply{Out: out[:arg.outLen]}, nil
}

func (n *node) close() error { return n.file.Close() }
