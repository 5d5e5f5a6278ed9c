package sim

import (
	"sync"

	"portcullis/fabricsm/transport"
)

// inbox holds what arrived for a station, in order. The fabric's mu guards it.
type inbox struct {
	packets []transport.Packet
	most    int
	dropped uint64
	more    *sync.Cond // on the fabric's mu: there are packets, or the station is closed
}

func newInbox(f *Fabric, most int) *inbox { return &inbox{most: most, more: sync.NewCond(&f.mu)} }

// move takes as many as fit.
func (b *inbox) move(to []transport.Packet) int {
	n := copy(to, b.packets)
	b.packets = b.packets[:copy(b.packets, b.packets[n:])]
	return n
}
