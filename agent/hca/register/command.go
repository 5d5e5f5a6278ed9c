package register

import (
	"encoding/binary"
	"fmt"
)

// Opcode numbers an mlx5 command.
type Opcode uint16

// Commands.
const (
	QueryHCAVportContext Opcode = 0x762
	QueryHCAVportPKey    Opcode = 0x765
	AccessReg            Opcode = 0x805
	AccessRegUser        Opcode = 0xB0C // the same, for other callers
)

// HeaderSize is that of the header of every answer; the request to access a
// register has one of the same size. Data follows.
const HeaderSize = 16

// Access is a command that reads or writes a register.
type Access struct {
	ID     ID
	Method Method
	Data   []byte // of the register; for a read what selects, and room for the rest
}

// String names the command in messages.
func (a Access) String() string { return fmt.Sprintf("%v %v", a.ID, a.Method) }

// Encode returns the bytes of the command.
func (a Access) Encode() []byte {
	p := make([]byte, HeaderSize, HeaderSize+len(a.Data))
	binary.BigEndian.PutUint16(p, uint16(AccessReg))
	binary.BigEndian.PutUint16(p[6:], uint16(a.Method))
	binary.BigEndian.PutUint16(p[10:], uint16(a.ID))
	return append(p, a.Data...)
}

// CommandOpcode is the opcode of a command; false if p is too short to have one.
func CommandOpcode(p []byte) (Opcode, bool) {
	if len(p) < 2 {
		return 0, false
	}
	return Opcode(binary.BigEndian.Uint16(p)), true
}

// DecodeAccess reads a command that Encode, or another program, made. Its data is that of p.
func DecodeAccess(p []byte) (a Access, err error) {
	if len(p) < HeaderSize {
		return a, fmt.Errorf("access to a register: %w: %d, want %d", ErrShort, len(p), HeaderSize)
	}
	if op, _ := CommandOpcode(p); op != AccessReg && op != AccessRegUser {
		return a, fmt.Errorf("access to a register: opcode 0x%03X is another command", uint16(op))
	}
	return Access{
		ID:     ID(binary.BigEndian.Uint16(p[10:])),
		Method: Method(binary.BigEndian.Uint16(p[6:])),
		Data:   p[HeaderSize:],
	}, nil
}

// Answer is the status of a command, and the data that it returned.
type Answer struct {
	Status   Status
	Syndrome uint32
	Data     []byte
}

// Encode returns the bytes of the answer.
func (a Answer) Encode() []byte {
	p := make([]byte, HeaderSize, HeaderSize+len(a.Data))
	p[0] = uint8(a.Status)
	binary.BigEndian.PutUint32(p[4:], a.Syndrome)
	return append(p, a.Data...)
}

// DecodeAnswer reads the answer to any command. Its data is that of p.
func DecodeAnswer(p []byte) (a Answer, err error) {
	if len(p) < HeaderSize {
		return a, fmt.Errorf("answer of the firmware: %w: %d, want %d", ErrShort, len(p), HeaderSize)
	}
	return Answer{Status: Status(p[0]), Syndrome: binary.BigEndian.Uint32(p[4:]), Data: p[HeaderSize:]}, nil
}

// Err is nil if the command was done, and an *Error that names it otherwise.
func (a Answer) Err(what string) error {
	if a.Status == OK {
		return nil
	}
	return &Error{What: what, Status: a.Status, Syndrome: a.Syndrome}
}
