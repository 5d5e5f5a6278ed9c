package umad

import (
	"encoding/binary"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// abiVersion is the required value of /sys/class/infiniband_mad/abi_version. Both header forms and both registrations
// belong to it.
const abiVersion = 5

// The ioctls of the interface: direction, size of the argument, magic 0x1B and
// number.
const (
	ioctlRegister   = 0xC01C1B01
	ioctlEnablePKey = 0x00001B03
	ioctlRegister2  = 0xC0281B04
)

const (
	registrationSize  = 28
	registration2Size = 40
)

// form is the size of the header before each MAD, in bytes.
type form int

const (
	form56 form = 56
	form64 form = 64 // with a P_Key index
)

// Byte offsets of the header. Its numbers are in host order, but for those that
// go onto the wire.
const (
	offAgent   = 0
	offStatus  = 4
	offTimeout = 8 // in ms, of a request to send; 0 for packets without an answer
	offQP      = 20
	offQKey    = 24
	offLID     = 28
	offSL      = 30
	offBits    = 31 // of the path
	offGRH     = 32 // 1: the following fields are of a GRH
	offGIDIdx  = 33 // of ours
	offHops    = 34
	offTC      = 35
	offGID     = 36 // of the other end
	offFlow    = 52
	offPKeyIdx = 56 // of the longer form
)

const (
	// statusTimeout is ETIMEDOUT as the kernel's headers have it on every
	// platform that has InfiniBand.
	statusTimeout = 110

	// qkeyGMP is the well-known Q_Key of QP1 (IBTA volume 1, 10.2.5).
	qkeyGMP = 0x80010000

	// maxPacket is more than any packet: an OPA MAD has 2048 bytes, and one
	// that does not fit would block those behind it.
	maxPacket = int(form64) + 2048
)

// encode writes the packet with its header and returns the number of bytes.
func (f form) encode(b []byte, agent uint32, timeout time.Duration, p *transport.Packet) int {
	host, wire := binary.NativeEndian, binary.BigEndian
	clear(b[:f])
	host.PutUint32(b[offAgent:], agent)
	if !p.MAD.IsResponse() {
		host.PutUint32(b[offTimeout:], uint32(timeout.Milliseconds()))
	}
	wire.PutUint32(b[offQP:], p.QP)
	if p.QP != 0 {
		wire.PutUint32(b[offQKey:], qkeyGMP)
	}
	wire.PutUint16(b[offLID:], uint16(p.LID))
	b[offSL], b[offBits] = byte(p.SL), p.PathBits
	if g := &p.GRH; g.Present {
		b[offGRH], b[offGIDIdx], b[offHops], b[offTC] = 1, g.GIDIndex, g.HopLimit, g.TrafficClass
		copy(b[offGID:], g.GID[:])
		wire.PutUint32(b[offFlow:], g.FlowLabel)
	}
	if f == form64 {
		host.PutUint16(b[offPKeyIdx:], p.PKeyIndex)
	}
	return int(f) + copy(b[f:], p.MAD[:])
}

// decode reads the result of one read of the device, and reports whether it was a packet.
func (f form) decode(b []byte, p *transport.Packet) bool {
	if len(b) < int(f)+mad.HeaderSize {
		return false
	}
	status, body := binary.NativeEndian.Uint32(b[offStatus:]), b[f:]
	if status == 0 && len(body) != mad.Size || status != 0 && status != statusTimeout {
		return false
	}
	p.Undelivered = status == statusTimeout
	p.QP = binary.BigEndian.Uint32(b[offQP:])
	p.LID = ib.LID(binary.BigEndian.Uint16(b[offLID:]))
	p.SL, p.PathBits, p.PKeyIndex, p.GRH = ib.SL(b[offSL]), b[offBits], 0, transport.GRH{}
	if f == form64 {
		p.PKeyIndex = binary.NativeEndian.Uint16(b[offPKeyIdx:])
	}
	if b[offGRH] != 0 {
		p.GRH = transport.GRH{
			Present: true, GIDIndex: b[offGIDIdx], HopLimit: b[offHops], TrafficClass: b[offTC],
			FlowLabel: binary.BigEndian.Uint32(b[offFlow:]), GID: ib.GID(b[offGID:offFlow]),
		}
	}
	n := copy(p.MAD[:], body)
	clear(p.MAD[n:])
	if p.Undelivered || p.MAD.IsResponse() {
		ours(&p.MAD)
	}
	return true
}

// ours clears the kernel's half of a transaction identifier of our own request, so that no caller depends on it. The
// identifiers of other senders' requests stay whole: our answers must carry them.
func ours(m *mad.MAD) { m.SetTID(m.TID() & 0xFFFFFFFF) }

// registration is the argument of REGISTER_AGENT. The kernel writes the agent's
// number into its first four bytes.
func registration(a Agent) (b [registrationSize]byte) {
	low, high := a.mask()
	binary.NativeEndian.PutUint64(b[4:], low)
	binary.NativeEndian.PutUint64(b[12:], high)
	b[20] = a.qp()
	b[21] = byte(a.Class)
	b[22] = a.Version
	return b
}

// registration2 is the argument of REGISTER_AGENT2, with the agent's number in
// the same place.
func registration2(a Agent) (b [registration2Size]byte) {
	host := binary.NativeEndian
	low, high := a.mask()
	host.PutUint32(b[4:], uint32(a.qp()))
	b[8] = byte(a.Class)
	b[9] = a.Version
	host.PutUint64(b[16:], low)
	host.PutUint64(b[24:], high)
	if a.RMPP {
		host.PutUint32(b[12:], flagUserRMPP)
		b[36] = rmppVersion
	}
	return b
}

const (
	flagUserRMPP = 1
	rmppVersion  = 1
)
