package ibsim

import (
	"encoding/binary"
	"net"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// serverClient is one attached client.
type serverClient struct {
	slot int
	ctl  *net.UnixAddr // where its control requests come from
	at   Attachment
	data *socket
	recv *receiver
	send *sender
}

// readLoop takes packets from the client until the socket closes, and returns the packets that they cause at once. It does
// so in the same goroutine, so that a client with one pending request waits for one wake-up of ours, as with ibsim.
func (c *serverClient) readLoop() {
	in := make([]transport.Packet, batchSize)
	var out []transport.Packet
	for {
		n, err := c.recv.await(in, (*frameHeader).fromClient)
		if err != nil {
			return
		}
		out = c.at.Exchange(in[:n], out[:0])
		if _, err := c.send.send(out, (*frameHeader).toClient); err != nil {
			return
		}
	}
}

// writeLoop passes on the packets that other clients cause.
func (c *serverClient) writeLoop() {
	out := make([]transport.Packet, batchSize)
	for {
		n, err := c.at.Receive(out)
		if err != nil {
			return
		}
		if _, err := c.send.send(out[:n], (*frameHeader).toClient); err != nil {
			return
		}
	}
}

// Offsets in attributes from which control replies are made.
const (
	portInfoPrefix = 8
	portInfoLID    = 16
	portInfoState  = 32 // low nibble
	nodeInfoRev    = 32
	nodeInfoDevice = 30
	nodeInfoVendor = 37
)

// control answers a request other than CONNECT. A type that the protocol does
// not have is echoed.
func (c *serverClient) control(req control, reply *control) {
	pi, _ := c.at.Query(mad.AttrPortInfo, 0)
	ni, _ := c.at.Query(mad.AttrNodeInfo, 0)
	d := &reply.data
	switch req.typ {
	case ctlGetPort:
		binary.NativeEndian.PutUint16(d[0:], binary.BigEndian.Uint16(pi[portInfoLID:]))
		d[2] = pi[portInfoState] & 0xF
		reply.length = 4
	case ctlGetVendor:
		binary.NativeEndian.PutUint32(d[0:], binary.BigEndian.Uint32(ni[nodeInfoVendor-1:])&0xFFFFFF)
		binary.NativeEndian.PutUint32(d[4:], uint32(binary.BigEndian.Uint16(ni[nodeInfoDevice:])))
		binary.NativeEndian.PutUint32(d[8:], binary.BigEndian.Uint32(ni[nodeInfoRev:]))
		binary.NativeEndian.PutUint64(d[16:], 1)
		reply.length = 24
	case ctlGetGID:
		copy(d[:8], pi[portInfoPrefix:])
		copy(d[8:16], ni[nodeInfoPortGUID:])
		reply.length = 16
	case ctlGetGUID:
		copy(d[:8], ni[nodeInfoPortGUID:])
		reply.length = 8
	case ctlGetNodeInfo:
		*d, reply.length = ni, mad.DataSize
	case ctlGetPortInfo:
		if asked, ok := c.at.Query(mad.AttrPortInfo, uint32(req.data[0])); ok {
			pi = asked
		}
		*d, reply.length = pi, mad.DataSize
	case ctlSetIsSM:
		c.at.SetIsSM(binary.NativeEndian.Uint32(req.data[:]) != 0)
	case ctlGetPKeys:
		*d, _ = c.at.Query(mad.AttrPKeyTable, 0)
		reply.length = mad.DataSize
	case ctlDisconnect:
	default:
		reply.length, reply.data = req.length, req.data
	}
}

// fromClient fills the addresses of a packet that a client sent.
func (h *frameHeader) fromClient(p *transport.Packet) {
	p.LID = ib.LID(binary.BigEndian.Uint16(h[frameDLID:]))
	p.QP = binary.BigEndian.Uint32(h[frameDQP:])
	p.Undelivered = false
	noMore(p)
}

// toClient writes the header of a packet for a client.
func (h *frameHeader) toClient(p *transport.Packet) {
	*h = frameHeader{}
	binary.BigEndian.PutUint16(h[frameSLID:], uint16(p.LID))
	binary.BigEndian.PutUint32(h[frameDQP:], p.QP)
	binary.BigEndian.PutUint32(h[frameSQP:], p.QP)
	binary.BigEndian.PutUint64(h[frameLength:], mad.Size)
	if p.Undelivered {
		binary.BigEndian.PutUint32(h[frameStatus:], statusTimedOut)
	}
}
