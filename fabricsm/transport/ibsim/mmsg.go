package ibsim

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/transport"
)

// batchSize is how many datagrams one system call carries.
const batchSize = 64

// message is the kernel's struct mmsghdr.
type message struct {
	hdr unix.Msghdr
	n   uint32 // bytes received or sent
}

// batch is the memory of one sendmmsg or recvmmsg: for each datagram its
// header and the MAD of the caller's packet, which is neither copied nor
// allocated.
type batch struct {
	msgs    [batchSize]message
	iovs    [batchSize][2]unix.Iovec
	headers [batchSize]frameHeader
}

func newBatch() *batch {
	b := &batch{}
	for i := range b.msgs {
		b.iovs[i][0].Base = &b.headers[i][0]
		b.iovs[i][0].SetLen(frameHeaderSize)
		b.msgs[i].hdr.Iov = &b.iovs[i][0]
		b.msgs[i].hdr.SetIovlen(2)
	}
	return b
}

// aim points the batch at the MADs of up to batchSize packets.
func (b *batch) aim(p []transport.Packet) int {
	n := min(len(p), batchSize)
	for i := range n {
		b.iovs[i][1].Base = &p[i].MAD[0]
		b.iovs[i][1].SetLen(len(p[i].MAD))
		b.msgs[i].n = 0
	}
	return n
}

// aimedAt reports that the batch points at these packets already.
func (b *batch) aimedAt(p []transport.Packet) bool {
	n := min(len(p), batchSize)
	return n > 0 && b.iovs[0][1].Base == &p[0].MAD[0] && b.iovs[n-1][1].Base == &p[n-1].MAD[0] &&
		(n == batchSize || b.iovs[n][1].Base == nil)
}

// release forgets the caller's packets, so that the batch does not keep them
// from being collected.
func (b *batch) release(n int) {
	for i := range n {
		b.iovs[i][1].Base = nil
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
