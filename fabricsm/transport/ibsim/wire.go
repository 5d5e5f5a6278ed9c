package ibsim

import (
	"encoding/binary"
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// The control message: four 32-bit words and 64 bytes of data, in host byte
// order. Both ends run on one machine, so that is the native order.
const (
	ctlSize     = 80
	ctlDataSize = 64
	ctlMagic    = 0xDEADBEEF

	// clientInfoSize is the data of CONNECT: number, QP, SM flag, node id.
	clientInfoSize = 44
	nodeIDSize     = 32 // with its terminating zero
)

// ctlType is the type of a control message.
type ctlType uint32

// Control messages; each is answered with one of the same type, or with
// ctlError.
const (
	ctlError       ctlType = 0
	ctlConnect     ctlType = 1
	ctlDisconnect  ctlType = 2
	ctlGetPort     ctlType = 3  // LID u16, state u8
	ctlGetVendor   ctlType = 4  // vendor u32, device u32, revision u32, firmware u64 @16
	ctlGetGID      ctlType = 5  // 16 bytes
	ctlGetGUID     ctlType = 6  // 8 bytes
	ctlGetNodeInfo ctlType = 7  // 64 bytes as in an SMP
	ctlGetPortInfo ctlType = 8  // request: port number, 0 own; 64 bytes as in an SMP
	ctlSetIsSM     ctlType = 9  // i32 0 or 1
	ctlGetPKeys    ctlType = 10 // first 32 P_Keys, big-endian
)

func (t ctlType) String() string {
	names := [...]string{
		"error", "connect", "disconnect", "get port", "get vendor", "get GID",
		"get GUID", "get NodeInfo", "get PortInfo", "set IsSM", "get P_Keys",
	}
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// control is a control message.
type control struct {
	client uint32
	typ    ctlType
	length uint32 // of the data in use
	data   [ctlDataSize]byte
}

func (c *control) encode() []byte {
	b := make([]byte, 0, ctlSize)
	b = binary.NativeEndian.AppendUint32(b, ctlMagic)
	b = binary.NativeEndian.AppendUint32(b, c.client)
	b = binary.NativeEndian.AppendUint32(b, uint32(c.typ))
	b = binary.NativeEndian.AppendUint32(b, c.length)
	return append(b, c.data[:]...)
}

// decodeControl reads a control message of exactly ctlSize bytes.
func decodeControl(b []byte) (c control, ok bool) {
	if len(b) != ctlSize || binary.NativeEndian.Uint32(b) != ctlMagic {
		return control{}, false
	}
	c.client = binary.NativeEndian.Uint32(b[4:])
	c.typ = ctlType(binary.NativeEndian.Uint32(b[8:]))
	c.length = binary.NativeEndian.Uint32(b[12:])
	copy(c.data[:], b[16:])
	return c, true
}

// clientInfo is the data of CONNECT in both directions.
type clientInfo struct {
	number uint32 // request: the client's number; reply: its slot
	qp     uint32
	asSM   bool
	node   string
}

func (i *clientInfo) encode(b *[ctlDataSize]byte) {
	binary.NativeEndian.PutUint32(b[0:], i.number)
	binary.NativeEndian.PutUint32(b[4:], i.qp)
	if i.asSM {
		binary.NativeEndian.PutUint32(b[8:], 1)
	}
	copy(b[12:12+nodeIDSize-1], i.node)
}

func decodeClientInfo(b *[ctlDataSize]byte) clientInfo {
	node, _, _ := strings.Cut(string(b[12:12+nodeIDSize]), "\x00")
	return clientInfo{
		number: binary.NativeEndian.Uint32(b[0:]),
		qp:     binary.NativeEndian.Uint32(b[4:]),
		asSM:   binary.NativeEndian.Uint32(b[8:]) != 0,
		node:   node,
	}
}

// The data message: a header of 32 bytes and one MAD. LIDs are big-endian in
// the first two bytes of their words.
const (
	frameHeaderSize = 32
	frameSize       = frameHeaderSize + mad.Size

	frameDLID   = 0
	frameSLID   = 4
	frameDQP    = 8
	frameSQP    = 12
	frameStatus = 16
	frameLength = 24

	// statusTimedOut is Linux's ETIMEDOUT: the request came back.
	statusTimedOut = 110
)

type frameHeader [frameHeaderSize]byte

// outgoing writes the header of a packet that a client sends. Source LID 0
// lets the simulator fill it in.
func (h *frameHeader) outgoing(p *transport.Packet) {
	*h = frameHeader{}
	binary.BigEndian.PutUint16(h[frameDLID:], uint16(p.LID))
	if p.LID == ib.PermissiveLID {
		binary.BigEndian.PutUint16(h[frameSLID:], uint16(ib.PermissiveLID))
	}
	binary.BigEndian.PutUint32(h[frameDQP:], p.QP)
	binary.BigEndian.PutUint32(h[frameSQP:], p.QP)
	binary.BigEndian.PutUint64(h[frameLength:], mad.Size)
}

// received fills the addresses of a packet that came with this header.
func (h *frameHeader) received(p *transport.Packet) {
	p.LID = ib.LID(binary.BigEndian.Uint16(h[frameSLID:]))
	p.QP = binary.BigEndian.Uint32(h[frameSQP:])
	p.Undelivered = binary.BigEndian.Uint32(h[frameStatus:]) != 0
	noMore(p)
}

// noMore clears the addresses that this wire does not carry.
func noMore(p *transport.Packet) {
	p.PKeyIndex, p.SL, p.PathBits, p.GRH = 0, 0, 0, transport.GRH{}
}
