package transport

import "time"

// Lane is one way through a port, by which one goroutine can send and receive
// without ever waiting for one of them. Several may send.
type Lane interface {
	// TrySend hands packets over in order until the wire is full, and returns how many were taken: fewer than len(p),
	// without an error, when it is. A caller that waits for room then has to receive meanwhile, or it may wait forever.
	TrySend(p []Packet) (n int, err error)

	// TryReceive fills p with the packets that have arrived, if any.
	TryReceive(p []Packet) (n int, err error)

	// Pause blocks until there may be something to receive, at most d. The receiving goroutine calls it after a TryReceive
	// that found nothing.
	Pause(d time.Duration) error

	// Wait blocks until there may be something to receive. Another goroutine
	// may send meanwhile, but not receive. Close of the port wakes it with
	// ErrClosed.
	Wait() error
}

// SALane is the lane of subnet administration.
type SALane interface {
	Lane

	// Dropped counts packets that came and found no room. A transport whose
	// kernel drops does not know of it.
	Dropped() uint64
}

// Laned is a Port that can provide a separate lane for subnet administration; see the package comment. Port and lane may be
// used by one goroutine each.
type Laned interface {
	Port

	// SA opens the lane. From then on packets of class SubnAdm come there alone.
	// It is called once at most, before anything is received by the port, and the
	// lane ends with the port.
	SA() (SALane, error)
}
