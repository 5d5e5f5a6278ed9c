package sa

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// way is the address of the sender of a packet.
type way struct {
	lid      ib.LID
	pkey     uint16
	qp       uint32
	sl       ib.SL
	pathBits uint8
	grh      transport.GRH
}

func wayOf(p *transport.Packet) way {
	return way{lid: p.LID, pkey: p.PKeyIndex, qp: p.QP, sl: p.SL, pathBits: p.PathBits, grh: p.GRH}
}

// address puts the way on a packet.
func (w *way) address(p *transport.Packet) {
	p.LID, p.PKeyIndex, p.QP, p.SL, p.PathBits, p.GRH = w.lid, w.pkey, w.qp, w.sl, w.pathBits, w.grh
	p.Undelivered = false
	if w.grh.Present {
		p.GRH.HopLimit = 255 // the remaining hops may not be enough for the way back
	}
}

// slot adds a packet to a list and returns it; the caller fills it. It holds old bytes.
func slot(list *[]transport.Packet) *transport.Packet {
	n := len(*list)
	if n == cap(*list) {
		*list = append(*list, transport.Packet{})
	} else {
		*list = (*list)[:n+1]
	}
	return &(*list)[n]
}

// answer makes the answer to a request: its header without the SA_Key and RMPP, and
// data that are zero.
func answer(to, request *mad.MAD, s mad.Status) {
	clear(to[mad.HeaderSize:])
	copy(to[:mad.HeaderSize], request[:mad.HeaderSize])
	to.SetMethod(request.Method().Response())
	to.SetStatus(s)
	to.SetComponentMask(request.ComponentMask())
}
