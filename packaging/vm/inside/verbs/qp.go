//go:build vm

package verbs

import (
	"encoding/binary"
	"fmt"
)

// Kind is an enum ib_qp_type.
type Kind uint8

// Kinds of queue pairs.
const (
	RC Kind = 2
	UD Kind = 4
)

// State is an enum ib_qp_state.
type State uint8

// States of a queue pair.
const (
	Reset State = 0
	Init  State = 1
	RTR   State = 2 // ready to receive
	RTS   State = 3 // ready to send
	Error State = 6
)

// Bits of enum ib_qp_attr_mask.
const (
	maskState       = 1 << 0
	maskAccess      = 1 << 3
	maskPKeyIndex   = 1 << 4
	maskPort        = 1 << 5
	maskQKey        = 1 << 6
	maskAV          = 1 << 7
	maskMTU         = 1 << 8
	maskTimeout     = 1 << 9
	maskRetries     = 1 << 10
	maskRNRRetries  = 1 << 11
	maskRQPSN       = 1 << 12
	maskReads       = 1 << 13
	maskRNRTimer    = 1 << 15
	maskSQPSN       = 1 << 16
	maskDestReads   = 1 << 17
	maskDestination = 1 << 20
)

// QP is a queue pair.
type QP struct {
	Number uint32

	context *Context
	handle  uint32
	kind    Kind
}

// depth is how many work requests of each kind a queue pair takes.
const depth = 16

// NewQP makes a queue pair, in state Reset.
func (c *Context) NewQP(kind Kind, cq *CQ) (*QP, error) {
	body, r := make([]byte, 56), make([]byte, 32)
	for i, v := range []uint32{c.pd, cq.handle, cq.handle, 0, depth, depth, 1, 1, 0} {
		ne.PutUint32(body[16+4*i:], v)
	}
	body[52] = 1 // every send is completed
	body[53] = byte(kind)
	if err := c.call(cmdCreateQP, body, r); err != nil {
		return nil, fmt.Errorf("create queue pair: %w", err)
	}
	return &QP{Number: ne.Uint32(r[4:]), context: c, handle: ne.Uint32(r), kind: kind}, nil
}

// Path is where a connection goes, and how patient it is.
type Path struct {
	Port      uint8
	PKeyIndex uint16
	QKey      uint32 // of datagrams
	LID       uint16 // of the far end, of a connection
	QP        uint32
	Timeout   uint8 // 4.096 µs * 2^Timeout
	Retries   uint8
}

// Init is the first step: the queue pair gets port and P_Key, or is refused them.
func (q *QP) Init(p Path) error {
	mask := uint32(maskState | maskPKeyIndex | maskPort | maskQKey)
	if q.kind == RC {
		mask = maskState | maskPKeyIndex | maskPort | maskAccess
	}
	return q.modify(Init, mask, p)
}

// Connect makes an initialized queue pair ready to send. Memory for received messages may be posted before.
func (q *QP) Connect(p Path) error {
	mask := uint32(maskState)
	if q.kind == RC {
		mask |= maskAV | maskMTU | maskDestination | maskRQPSN | maskDestReads | maskRNRTimer
	}
	if err := q.modify(RTR, mask, p); err != nil {
		return err
	}
	mask = maskState | maskSQPSN
	if q.kind == RC {
		mask |= maskTimeout | maskRetries | maskRNRRetries | maskReads
	}
	return q.modify(RTS, mask, p)
}

// Fail puts the queue pair into the error state.
func (q *QP) Fail() error { return q.modify(Error, maskState, Path{}) }

func (q *QP) modify(to State, mask uint32, p Path) error {
	b := make([]byte, 112)
	ne.PutUint16(b[20:], p.LID)
	b[31] = p.Port
	ne.PutUint32(b[64:], q.handle)
	ne.PutUint32(b[68:], mask)
	ne.PutUint32(b[72:], p.QKey)
	ne.PutUint32(b[84:], p.QP)
	ne.PutUint16(b[92:], p.PKeyIndex)
	b[96] = byte(to)
	b[98] = 5   // path MTU of 4096 bytes
	b[103] = 12 // RNR NAK timer: 0.64 ms
	b[104] = p.Port
	b[105], b[106], b[107] = p.Timeout, p.Retries, p.Retries
	if err := q.context.call(cmdModifyQP, b, nil); err != nil {
		return fmt.Errorf("queue pair %#x to state %d: %w", q.Number, to, err)
	}
	return nil
}

// State returns the state of the queue pair.
func (q *QP) State() (State, error) {
	body, r := make([]byte, 16), make([]byte, 128)
	ne.PutUint32(body[8:], q.handle)
	ne.PutUint32(body[12:], maskState)
	if err := q.context.call(cmdQueryQP, body, r); err != nil {
		return 0, fmt.Errorf("query queue pair: %w", err)
	}
	return State(r[108]), nil
}

// Destroy ends the queue pair.
func (q *QP) Destroy() error {
	body, r := make([]byte, 16), make([]byte, 4)
	ne.PutUint32(body[8:], q.handle)
	return q.context.call(cmdDestroyQP, body, r)
}

// Address is where datagrams go.
type Address struct{ handle uint32 }

// Address makes an address of a LID.
func (c *Context) Address(port uint8, lid uint16) (Address, error) {
	body, r := make([]byte, 56), make([]byte, 4)
	ne.PutUint32(body[16:], c.pd)
	attr := body[24:]
	ne.PutUint16(attr[24:], lid)
	attr[30] = port
	if err := c.call(cmdCreateAH, body, r); err != nil {
		return Address{}, fmt.Errorf("create address: %w", err)
	}
	return Address{ne.Uint32(r)}, nil
}

// Send posts a message of a connection.
func (q *QP) Send(id uint64, m *Memory, offset, length int) error {
	return q.post(cmdPostSend, sendRequest(id), m.entry(offset, length))
}

// SendTo posts a datagram.
func (q *QP) SendTo(id uint64, m *Memory, offset, length int, to Address, number, qkey uint32) error {
	w := sendRequest(id)
	ne.PutUint32(w[24:], to.handle)
	ne.PutUint32(w[28:], number)
	ne.PutUint32(w[32:], qkey)
	return q.post(cmdPostSend, w, m.entry(offset, length))
}

func sendRequest(id uint64) []byte {
	const send, signaled = 2, 1 << 1
	w := make([]byte, 56)
	ne.PutUint64(w, id)
	ne.PutUint32(w[8:], 1)
	ne.PutUint32(w[12:], send)
	ne.PutUint32(w[16:], signaled)
	return w
}

// Receive posts memory for one message. A datagram begins with 40 bytes for its global route header.
func (q *QP) Receive(id uint64, m *Memory, offset, length int) error {
	w := make([]byte, 16)
	ne.PutUint64(w, id)
	ne.PutUint32(w[8:], 1)
	return q.post(cmdPostRecv, w, m.entry(offset, length))
}

// GRHSize is how many bytes are before a datagram.
const GRHSize = 40

func (q *QP) post(command uint32, request, entry []byte) error {
	body, r := make([]byte, 24), make([]byte, 4)
	for i, v := range []uint32{q.handle, 1, 1, uint32(len(request))} {
		binary.NativeEndian.PutUint32(body[8+4*i:], v)
	}
	body = append(append(body, request...), entry...)
	if err := q.context.call(command, body, r); err != nil {
		return fmt.Errorf("post to queue pair %#x: %w", q.Number, err)
	}
	return nil
}
