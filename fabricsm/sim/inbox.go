package sim

import (
	"sync"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// maxQueued is the number of packets that wait at each of the two queue pairs of management: as many receives as Linux
// posts (IB_MAD_QP_RECV_SIZE). Every packet beyond that is lost.
const maxQueued = 512

// inbox holds the packets that arrived for a station, in order. The fabric's mu guards it.
type inbox struct {
	packets []transport.Packet
	smps    int // of these
	most    int // of SMPs, and of all others
	dropped uint64
	more    *sync.Cond // on the fabric's mu: there are packets, or the station is closed
}

func newInbox(f *Fabric, most int) *inbox { return &inbox{most: most, more: sync.NewCond(&f.mu)} }

// place makes room for a MAD, to be filled in; nil: its queue is full.
func (b *inbox) place(m *mad.MAD) *transport.Packet {
	smp := m.IsSMP()
	if smp && b.smps >= b.most || !smp && len(b.packets)-b.smps >= b.most {
		b.dropped++
		return nil
	}
	if smp {
		b.smps++
	}
	b.packets = append(b.packets, transport.Packet{})
	return &b.packets[len(b.packets)-1]
}

// move takes as many as fit.
func (b *inbox) move(to []transport.Packet) int {
	n := copy(to, b.packets)
	for i := range to[:n] {
		if to[i].MAD.IsSMP() {
			b.smps--
		}
	}
	b.packets = b.packets[:copy(b.packets, b.packets[n:])]
	return n
}

// empty takes all.
func (b *inbox) empty() { b.packets, b.smps = b.packets[:0], 0 }
