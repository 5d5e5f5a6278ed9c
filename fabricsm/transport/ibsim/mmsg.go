package ibsim

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// batchSize is how many datagrams one system call carries.
const batchSize = 64

// message is the kernel's struct mmsghdr.
type message struct {
	hdr unix.Msghdr
	n   uint32 // bytes received or sent
}

// batch is the memory of one sendmmsg or recvmmsg. Datagrams are copied out of it
// and into it: to have the system gather each from two places costs it more.
type batch struct {
	msgs   [batchSize]message
	iovs   [batchSize]unix.Iovec
	frames [batchSize]frame
}

// frame is a data message: header and MAD.
type frame [frameSize]byte

func (f *frame) header() *frameHeader { return (*frameHeader)(f[:frameHeaderSize]) }
func (f *frame) mad() *mad.MAD        { return (*mad.MAD)(f[frameHeaderSize:]) }

// isSA reports whether a MAD belongs to subnet administration.
func (f *frame) isSA() bool { return f.mad().Class() == mad.ClassSubnAdm }

func newBatch() *batch {
	b := &batch{}
	for i := range b.msgs {
		b.iovs[i].Base = &b.frames[i][0]
		b.iovs[i].SetLen(frameSize)
		b.msgs[i].hdr.Iov = &b.iovs[i]
		b.msgs[i].hdr.SetIovlen(1)
	}
	return b
}

// load puts as many packets into the batch as it holds, with headers that fill writes, and returns how many.
func (b *batch) load(p []transport.Packet, fill func(*frameHeader, *transport.Packet)) int {
	n := min(len(p), batchSize)
	for i := range n {
		fill(b.frames[i].header(), &p[i])
		*b.frames[i].mad() = p[i].MAD
	}
	return n
}

// send sends messages from to to, as many as go without waiting.
func (b *batch) send(fd uintptr, from, to int) (int, syscall.Errno) {
	if to-from == 1 {
		// A client with one request under way waits for this: a plain send costs
		// the system less.
		_, errno := call(unix.SYS_SENDTO, fd, unsafe.Pointer(&b.frames[from]), frameSize)
		return 1, errno
	}
	return call(unix.SYS_SENDMMSG, fd, unsafe.Pointer(&b.msgs[from]), to-from)
}

// receive takes up to want messages that are there.
func (b *batch) receive(fd uintptr, want int) (int, syscall.Errno) {
	return call(unix.SYS_RECVMMSG, fd, unsafe.Pointer(&b.msgs[0]), want)
}

// await is receive, but waits until there is a message.
func (b *batch) await(fd uintptr, want int) (int, syscall.Errno) {
	return wait(unix.SYS_RECVMMSG, fd, unsafe.Pointer(&b.msgs[0]), want, unix.MSG_WAITFORONE)
}

// awaitOne waits for one message, which costs the system a fifth less.
func (b *batch) awaitOne(fd uintptr) (int, syscall.Errno) {
	n, errno := wait(unix.SYS_RECVFROM, fd, unsafe.Pointer(&b.frames[0]), frameSize, 0)
	b.msgs[0].n = uint32(n)
	return 1, errno
}

// wait runs a system call that receives, and blocks until it can.
func wait(trap, fd uintptr, what unsafe.Pointer, size int, flags uintptr) (int, syscall.Errno) {
	for {
		n, _, errno := unix.Syscall6(trap, fd, uintptr(what), uintptr(size), flags, 0, 0)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

// call runs a system call that sends or receives. It never blocks, so the
// scheduler need not hear of it.
func call(trap, fd uintptr, what unsafe.Pointer, size int) (int, syscall.Errno) {
	for {
		n, _, errno := unix.RawSyscall6(trap, fd, uintptr(what), uintptr(size), unix.MSG_DONTWAIT, 0, 0)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}
