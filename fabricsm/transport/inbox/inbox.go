// Package inbox receives the packets of a port for a goroutine that also sends by it.
//
// A goroutine that receives must not wait for the one that sends: a send may wait until something is received, while the wire
// is full. Packets that find no room are therefore lost, as on the wire.
package inbox

import "portcullis/fabricsm/transport"

// Batch is how many packets are received at a time at most.
const Batch = 64

// Inbox has what a port received and its reader has not taken yet. One goroutine reads it.
type Inbox struct {
	full  chan []transport.Packet
	spare chan []transport.Packet
	err   error // why there are no more, once full is closed
}

// Open receives from a port until it fails or is closed. At most size batches wait to be taken, of Batch packets each at most.
// Buffers are made when they are needed, and used again.
func Open(port transport.Port, size int) *Inbox {
	b := &Inbox{full: make(chan []transport.Packet, size), spare: make(chan []transport.Packet, size)}
	go b.receive(port)
	return b
}

// Batches returns the channel of what was received. It is closed when nothing more is received; then Err has the cause.
func (b *Inbox) Batches() <-chan []transport.Packet { return b.full }

// Release returns the buffer of a batch, which is used again. The caller must not use its packets any more.
func (b *Inbox) Release(batch []transport.Packet) {
	select {
	case b.spare <- batch[:cap(batch)]:
	default:
	}
}

// Err returns why nothing more is received. It is valid after the channel of Batches was closed.
func (b *Inbox) Err() error { return b.err }

// Drain waits until nothing receives any more, and drops what was not taken. The port must have been closed.
func (b *Inbox) Drain() {
	for range b.full {
	}
}

func (b *Inbox) receive(port transport.Port) {
	defer close(b.full)
	buffer := make([]transport.Packet, Batch)
	for {
		n, err := port.Receive(buffer)
		if err != nil {
			b.err = err
			return
		}
		select {
		case b.full <- buffer[:n]:
			buffer = b.empty()
		default: // lost: the buffer is used again
		}
	}
}

// empty returns a buffer that is not in use.
func (b *Inbox) empty() []transport.Packet {
	select {
	case s := <-b.spare:
		return s
	default:
		return make([]transport.Packet, Batch)
	}
}
