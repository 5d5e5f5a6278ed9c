package softhcaserver

import (
	"encoding/binary"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport/softhca"
)

// Fields of a global route header (IBTA volume 1, 8.3).
const (
	routeVersion = 6
	routeNext    = 0x1B // an InfiniBand transport header follows
	flowLabels   = 1<<20 - 1
)

// routeHeader is the global route header of a packet from the host; nil: it has none.
func routeHeader(m *softhca.Message) *sim.GRH {
	if m.Flags&softhca.FlagGRH == 0 {
		return nil
	}
	first := binary.BigEndian.Uint32(m.GRH[:])
	return &sim.GRH{
		TrafficClass: uint8(first >> 20), FlowLabel: first & flowLabels, HopLimit: m.GRH[7], SGID: ib.GID(m.GRH[8:24]), DGID: ib.GID(m.GRH[24:40]),
	}
}

// putRouteHeader writes the header of a packet with so many bytes of payload.
func putRouteHeader(to *[40]byte, g *sim.GRH, payload int) {
	const transportAndCRC = 24 // of a datagram: base and datagram headers, invariant CRC
	binary.BigEndian.PutUint32(to[:], routeVersion<<28|uint32(g.TrafficClass)<<20|g.FlowLabel&flowLabels)
	binary.BigEndian.PutUint16(to[4:], uint16(payload+transportAndCRC))
	to[6], to[7] = routeNext, g.HopLimit
	copy(to[8:24], g.SGID[:])
	copy(to[24:40], g.DGID[:])
}

// pathBits are the lower bits of one of the port's LIDs.
func (p *port) pathBits(lid ib.LID) ib.LID {
	at := p.host.Endpoint()
	info := p.adapter.server.fabric.PortInfo(at.Node, at.Port)
	if lid < info.LID || int(lid) >= int(info.LID)+1<<info.LMC {
		return 0
	}
	return lid - info.LID
}

func pkeyTable(keys []ib.PKey) []byte {
	b := make([]byte, 0, 2*len(keys))
	for _, k := range keys {
		b = binary.BigEndian.AppendUint16(b, uint16(k))
	}
	return b
}
