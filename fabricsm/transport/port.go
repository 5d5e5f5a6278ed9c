package transport

import (
	"errors"

	"portcullis/fabricsm/ib"
)

// ErrClosed is returned by every method of a Port after Close. A Receive that
// waits when Close is called returns it, too.
var ErrClosed = errors.New("transport: port is closed")

// ErrLost is wrapped by the errors of a Port whose device or simulator went
// away. The port stays unusable; the owner may dial again.
var ErrLost = errors.New("transport: port is lost")

// Poller is a Port that one goroutine can drive in both directions without ever waiting for one of them. A caller uses
// either TrySend and TryReceive or Send and Receive.
type Poller interface {
	Port
	Lane
}

// Port is an attachment to one InfiniBand port. One goroutine may send while
// another receives; Close may be called from anywhere.
type Port interface {
	// Send hands the packets over in order and returns how many were taken;
	// fewer than len(p) only with an error. It blocks only while the wire is
	// full.
	Send(p []Packet) (n int, err error)

	// Receive fills p with packets that have arrived: it waits for the first packet and takes the others only if they are
	// there already.
	Receive(p []Packet) (n int, err error)

	// SetIsSM sets or clears the IsSM capability bit of the port, by which the
	// fabric finds its subnet managers.
	SetIsSM(on bool) error

	// GUID is the port GUID of the port we are attached to.
	GUID() ib.GUID

	// Close detaches. It wakes a blocked Receive and is idempotent.
	Close() error
}
