package softhca

import (
	"encoding/binary"
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
)

// Version is that of the protocol, which Attach names.
const Version = 2

// Sizes in bytes, and other bounds.
const (
	HeadSize   = 96
	MaxPayload = 4096
	MaxMessage = HeadSize + MaxPayload
	MaxPorts   = 4
	MaxPKeys   = 128
	grhSize    = 40
)

// Type is the purpose of a message.
type Type uint8

// Types of messages. The adapter's kernel sends Attached, Send, Request and Capability, its peer all others.
const (
	TypeAttach     Type = 1  // registers the adapter; the payload is an Attach
	TypeAttached   Type = 2  // it is registered, or Status says why not
	TypeSend       Type = 3  // a packet for the link
	TypeReceive    Type = 4  // a packet from the link
	TypeRequest    Type = 5  // a MAD for the adapter's firmware
	TypeReply      Type = 6  // its answer, with the same Token
	TypeCapability Type = 7  // Value has capability bits to set, Value2 to clear
	TypeEvent      Type = 8  // Value is an Event
	TypePKeys      Type = 9  // the payload is the P_Key table of the port from now on
	TypeDetach     Type = 10 // pulls the adapter, as the end of the connection does
)

// Event is a change that the adapter reports to its driver.
type Event uint32

// Events.
const (
	EventLID        Event = 1
	EventGID        Event = 2
	EventPKey       Event = 3
	EventActive     Event = 4
	EventError      Event = 5 // the port is no longer active
	EventSM         Event = 6
	EventReregister Event = 7
	EventFatal      Event = 8 // of the whole device
)

// Flags of a message.
type Flags uint8

// Flags.
const (
	FlagGRH       Flags = 0x01 // the packet has a global route header
	FlagHost      Flags = 0x02 // the request comes from the host's software, not from the driver
	FlagSolicited Flags = 0x04
	FlagImmediate Flags = 0x08
	FlagPath      Flags = 0x10 // SLID has only path bits
)

// Opcode is the operation of a packet.
type Opcode uint8

// Opcodes.
const (
	OpDatagram Opcode = 0 // MADs, and SEND of unreliable datagrams
	OpRCSend   Opcode = 1 // SEND of a reliable connection
	OpRCAck    Opcode = 2 // Value is an Ack
)

// Ack is the answer of a responder to a packet.
type Ack uint32

// Kinds of acknowledgments.
const (
	AckOK        Ack = 0
	NAKSequence  Ack = 1
	NAKInvalid   Ack = 2
	NAKOperation Ack = 3
	NAKNotReady  Ack = 4 // Value2 is the timer code to wait
)

// Message is one message. Which fields mean something follows from its type.
type Message struct {
	Type      Type
	Port      ib.PortNum
	Flags     Flags
	Opcode    Opcode
	Token     uint32
	Status    uint32 // an error number of Linux; 0: none
	SourceQP  uint32
	DestQP    uint32
	QKey      uint32
	DLID      ib.LID
	SLID      ib.LID
	PKey      ib.PKey
	SL        ib.SL
	PSN       uint32
	Immediate uint32
	Value     uint32
	Value2    uint32
	GRH       [grhSize]byte
	Payload   []byte
}

// Append appends the message as it is sent. A payload that is too long is a mistake of the program.
func (m *Message) Append(b []byte) []byte {
	if len(m.Payload) > MaxPayload {
		panic(fmt.Sprintf("softhca: payload of %d bytes", len(m.Payload)))
	}
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(HeadSize+len(m.Payload)))
	b = append(b, byte(m.Type), byte(m.Port), byte(m.Flags), byte(m.Opcode))
	for _, v := range []uint32{m.Token, m.Status, m.SourceQP, m.DestQP, m.QKey} {
		b = le.AppendUint32(b, v)
	}
	b = le.AppendUint16(b, uint16(m.DLID))
	b = le.AppendUint16(b, uint16(m.SLID))
	b = le.AppendUint16(b, uint16(m.PKey))
	b = append(b, byte(m.SL), 0)
	b = le.AppendUint32(b, m.PSN)
	b = binary.BigEndian.AppendUint32(b, m.Immediate)
	b = le.AppendUint32(b, m.Value)
	b = le.AppendUint32(b, m.Value2)
	b = append(b, 0, 0, 0, 0)
	b = append(b, m.GRH[:]...)
	return append(b, m.Payload...)
}

// ErrSize means that a message says a size that none can have.
var ErrSize = errors.New("softhca: message of an impossible size")

// Parse reads the message that b begins with, and returns how long it is; 0 means that b has only a part of it.
// The payload refers to b.
func Parse(b []byte) (m Message, size int, err error) {
	if len(b) < 4 {
		return m, 0, nil
	}
	le := binary.LittleEndian
	said := le.Uint32(b)
	if said < HeadSize || said > MaxMessage {
		return m, 0, fmt.Errorf("%w: %d bytes", ErrSize, said)
	}
	if size = int(said); len(b) < size {
		return m, 0, nil
	}
	m = Message{
		Type: Type(b[4]), Port: ib.PortNum(b[5]), Flags: Flags(b[6]), Opcode: Opcode(b[7]),
		Token: le.Uint32(b[8:]), Status: le.Uint32(b[12:]), SourceQP: le.Uint32(b[16:]), DestQP: le.Uint32(b[20:]), QKey: le.Uint32(b[24:]),
		DLID: ib.LID(le.Uint16(b[28:])), SLID: ib.LID(le.Uint16(b[30:])), PKey: ib.PKey(le.Uint16(b[32:])), SL: ib.SL(b[34]),
		PSN: le.Uint32(b[36:]), Immediate: binary.BigEndian.Uint32(b[40:]), Value: le.Uint32(b[44:]), Value2: le.Uint32(b[48:]),
	}
	copy(m.GRH[:], b[56:HeadSize])
	m.Payload = b[HeadSize:size:size]
	return m, size, nil
}
