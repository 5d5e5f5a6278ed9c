// Package transport moves management datagrams between a program and one
// InfiniBand port; its subpackages are the ways to reach such a port.
package transport

import (
	"errors"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// ErrClosed is returned by every method of a Port after Close. A Receive that
// waits when Close is called returns it, too.
var ErrClosed = errors.New("transport: port is closed")

// ErrLost is wrapped by the errors of a Port whose device or simulator went
// away. The port stays unusable; the owner may dial again.
var ErrLost = errors.New("transport: port is lost")

// Packet is one management datagram with its addresses.
type Packet struct {
	MAD mad.MAD

	// LID is the destination of a packet to send (ib.PermissiveLID for a
	// directed route) and the source of a received one.
	LID ib.LID

	// QP is 0 for SMPs and 1 for GMPs: the destination queue pair of a packet
	// to send, the source queue pair of a received one.
	QP uint32

	// Undelivered is set on a received packet that is our own request come
	// back because nobody answered it.
	Undelivered bool
}

// Poller is a Port that one goroutine can drive in both directions without ever
// waiting for one of them. Who uses TrySend and TryReceive does not use Send and
// Receive.
type Poller interface {
	Port

	// TrySend hands packets over in order until the wire is full, and returns
	// how many were taken: fewer than len(p), without an error, when it is.
	TrySend(p []Packet) (n int, err error)

	// TryReceive fills p with what has arrived, if anything has.
	TryReceive(p []Packet) (n int, err error)

	// Pause blocks until there may be something to receive, at most d. Who
	// receives calls it, when a TryReceive found nothing.
	Pause(d time.Duration) error

	// Wait blocks until there may be something to receive. Another goroutine
	// may send meanwhile, but not receive. Close wakes it with ErrClosed.
	Wait() error
}

// Port is an attachment to one InfiniBand port. One goroutine may send while
// another receives; Close may be called from anywhere.
type Port interface {
	// Send hands the packets over in order and returns how many were taken;
	// fewer than len(p) only with an error. It blocks only while the wire is
	// full.
	Send(p []Packet) (n int, err error)

	// Receive fills p with what has arrived: it waits for the first packet and
	// takes the others only if they are there already.
	Receive(p []Packet) (n int, err error)

	// SetIsSM sets or clears the IsSM capability bit of the port, by which the
	// fabric finds its subnet managers.
	SetIsSM(on bool) error

	// GUID is the port GUID of the port we are attached to.
	GUID() ib.GUID

	// Close detaches. It wakes a blocked Receive and is idempotent.
	Close() error
}
