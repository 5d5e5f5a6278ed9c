package transport

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Packet is one management datagram with its addresses. Those of a received packet fit for the answer: the answer is the
// same packet with another MAD. SMPs use only LID and QP, and so do all packets over ibsim's sockets, which carry no more.
// The Q_Key of GMPs is the well-known one.
type Packet struct {
	MAD mad.MAD

	// LID is the destination of a packet to send (ib.PermissiveLID for a
	// directed route) and the source of a received one.
	LID ib.LID

	// PKeyIndex is where in the P_Key table of our port the packet's P_Key is.
	PKeyIndex uint16

	// QP is 0 for SMPs and 1 for GMPs: the destination queue pair of a packet
	// to send, the source queue pair of a received one. 24 bits.
	QP uint32

	SL ib.SL

	// PathBits are the lower bits of our LID, as many as the LMC of the port says:
	// of the source of a packet to send, of the destination of a received one.
	PathBits uint8

	// Undelivered is set on a received packet that is our own request, which came back without an answer.
	Undelivered bool

	GRH GRH // if it has one
}

// GRH is a global route header (IBTA volume 1, 8.3) as one end sees it.
type GRH struct {
	Present      bool
	GIDIndex     uint8 // of our GID, in the table of our port
	HopLimit     uint8
	TrafficClass uint8
	FlowLabel    uint32 // 20 bits
	GID          ib.GID // of the other end
}

// IsSA reports whether a packet belongs to subnet administration. A Laned port passes it to that lane.
func (p *Packet) IsSA() bool { return p.MAD.Class() == mad.ClassSubnAdm }
