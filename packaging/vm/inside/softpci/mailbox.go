//go:build vm

package softpci

import (
	"encoding/binary"

	"portcullis/agent/hca/register"
)

// Commands of the mailbox that a card has here.
const (
	opCapabilities   = 0x8400
	opAccessRegister = 0x9001
)

// capabilities says: settings, PSID, all registers by access to registers, MCAM.
const capabilities = 1<<31 | 1<<30 | 1<<29 | 1<<26

// How a command of the mailbox ended.
const (
	commandDone          = 0
	commandInvalidOpcode = 1
	commandInvalid       = 2
	commandFailed        = 3
)

// The mailbox holds the head of an operation, then that of a register, and the register. Each head begins with a type in 5 bits,
// and a length in 11, in dwords.
const (
	operationSize     = 16
	registerHead      = 4
	typeOperation     = 1
	typeRegister      = 3
	methodQuery       = 1
	methodWrite       = 2
	methodResponse    = 0x80
	registerAt        = operationSize + registerHead
	statusNoSuchThing = 4
)

// command does what is in the mailbox. A firmware that is silent leaves it busy.
func (f *Function) command(m message) {
	status, silent := uint32(commandInvalidOpcode), false
	switch m.value {
	case opCapabilities:
		clear(m.payload[:8])
		binary.BigEndian.PutUint32(m.payload, capabilities)
		status = commandDone
	case opAccessRegister:
		status, silent = f.access(m.payload)
	}
	if !silent {
		_ = f.send(typeDone, message{token: m.token, status: status, payload: m.payload}) // fails if the host has given up
	}
}

// access does the access to a register that is in a mailbox, and puts the answer there.
func (f *Function) access(box []byte) (status uint32, silent bool) {
	if len(box) < registerAt || box[0]>>3 != typeOperation || box[operationSize]>>3 != typeRegister {
		return commandInvalid, false
	}
	size := 4*int(binary.BigEndian.Uint16(box[operationSize:])&0x7ff) - registerHead
	if size < 0 || registerAt+size > len(box) {
		return commandInvalid, false
	}
	a := register.Access{ID: register.ID(binary.BigEndian.Uint16(box[4:])), Method: register.Read, Data: box[registerAt : registerAt+size]}
	if box[6]&^methodResponse == methodWrite {
		a.Method = register.Write
	}
	reply, err := f.firmware(register.RPC{Scope: register.DebugWrite, In: a.Encode(), Room: register.HeaderSize + size})
	if err != nil {
		return 0, true
	}
	if reply.Errno != 0 {
		return commandFailed, false
	}
	answer, err := register.DecodeAnswer(reply.Out)
	if err != nil {
		return commandFailed, false
	}
	copy(box[registerAt:registerAt+size], answer.Data)
	box[2] = box[2]&0x80 | toolStatus(answer.Status)
	box[6] |= methodResponse
	return commandDone, false
}

// toolStatus returns the status of an operation for that of a command.
func toolStatus(s register.Status) byte {
	switch s {
	case register.OK:
		return 0
	case register.Busy:
		return 1
	case register.BadSystemState:
		return statusNoSuchThing
	case register.BadOperation:
		return 6
	case register.BadParameter, register.BadIndex, register.BadResource:
		return 7
	case register.NoResources, register.LimitExceeded, register.BadResourceState:
		return 8
	case register.BadInputLength, register.BadOutputLength:
		return 0x24
	default:
		return 0x70 // internal error
	}
}
