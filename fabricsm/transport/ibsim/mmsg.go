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

// load puts as many packets into the batch as it holds, with headers that fill
// writes, and tells how many.
func (b *batch) load(p []transport.Packet, fill func(*frameHeader, *transport.Packet)) int {
	n := min(len(p), batchSize)
	for i := range n {
		fill(b.frames[i].header(), &p[i])
		*b.frames[i].mad() = p[i].MAD
	}
	return n
}

// await runs recvmmsg, which waits until there is one message, on want of them.
func (b *batch) await(fd uintptr, want int) (int, syscall.Errno) {
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, fd, uintptr(unsafe.Pointer(&b.msgs[0])), uintptr(want), unix.MSG_WAITFORONE, 0, 0)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}

// call runs sendmmsg or recvmmsg on messages from to to. It never blocks, so the
// scheduler need not hear of it.
func (b *batch) call(trap, fd uintptr, from, to int) (int, syscall.Errno) {
	for {
		n, _, errno := unix.RawSyscall6(trap, fd, uintptr(unsafe.Pointer(&b.msgs[from])), uintptr(to-from), unix.MSG_DONTWAIT, 0, 0)
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}
