package hcasim

import (
	"errors"

	"portcullis/agent/hca/register"
)

// Error numbers of Linux that the driver's side of a command returns.
const (
	errnoBadMessage = 74  // EBADMSG: opcode or scope
	errnoLength     = 90  // EMSGSIZE
	errnoTimeout    = 110 // ETIMEDOUT
)

// Why there is no reply at all.
var (
	// ErrPowerLost: the power went while the command was under way.
	ErrPowerLost = errors.New("the card lost power")
	// ErrSilent: the card does not answer.
	ErrSilent = errors.New("the card is silent")
)

// RPC does one FWCTL_RPC: first the checks of the kernel's driver, then the command of the firmware. The error is
// ErrPowerLost or ErrSilent; then there is no reply.
func (c *Card) RPC(r register.RPC) (register.Reply, error) {
	live := c.live(r) // may take its time, and look at the card
	c.mu.Lock()
	before := c.resets
	reply, err := c.rpc(r, live)
	booted, hook := c.resets != before, c.onBoot
	c.mu.Unlock()
	if booted && hook != nil {
		hook()
	}
	return reply, err
}

func (c *Card) rpc(r register.RPC, live Live) (register.Reply, error) {
	if errno := driver(r); errno != 0 {
		return register.Reply{Errno: errno}, nil
	}
	f, faulty := c.faults.of(r)
	if faulty && f.Kind == Silence {
		return register.Reply{}, ErrSilent
	}
	if faulty && f.Kind == PowerLoss {
		c.boot()
		return register.Reply{}, ErrPowerLost
	}
	var answer register.Answer
	switch {
	case faulty && f.Kind == Timeout:
		return register.Reply{Errno: errnoTimeout}, nil
	case faulty && f.Kind == Refusal:
		answer = register.Answer{Status: f.Status}
	default:
		answer = c.command(r, live)
	}
	if c.power.gone {
		c.boot()
		return register.Reply{}, ErrPowerLost
	}
	if c.resetWanted {
		c.boot()
	}
	if faulty && f.Kind == LostReply {
		return register.Reply{Errno: errnoTimeout}, nil
	}
	if faulty {
		f.distort(&answer)
	}
	return register.Reply{Out: fit(answer, r.Room, faulty && f.Kind == WrongLength)}, nil
}

// driver is what Linux' mlx5_fwctl checks of a command.
func driver(r register.RPC) (errno uint32) {
	if len(r.In) < register.HeaderSize || r.Room < register.HeaderSize {
		return errnoLength
	}
	op, _ := register.CommandOpcode(r.In)
	need := register.Configuration
	switch op {
	case register.QueryHCAVportContext:
	case register.QueryHCAVportPKey:
		need = register.DebugReadOnly
	case register.AccessReg, register.AccessRegUser:
		if a, err := register.DecodeAccess(r.In); err != nil || a.Method != register.Write {
			need = register.DebugReadOnly
		}
	default:
		return errnoBadMessage
	}
	if r.Scope < need || r.Scope > register.DebugWriteFull {
		return errnoBadMessage
	}
	return 0
}

// fit cuts or extends the answer to the length that its reader has room for, as the kernel does.
func fit(a register.Answer, room int, wrong bool) []byte {
	out := a.Encode()
	if wrong {
		return out
	}
	if len(out) < room {
		out = append(out, make([]byte, room-len(out))...)
	}
	return out[:room]
}

// command does a command that the driver let pass.
func (c *Card) command(r register.RPC, live Live) register.Answer {
	if q, err := register.DecodeVportQuery(r.In); err == nil {
		data, status := c.vport(q, live, r.Room-register.HeaderSize)
		return register.Answer{Status: status, Data: data}
	}
	a, err := register.DecodeAccess(r.In)
	if err != nil {
		return register.Answer{Status: register.BadOperation}
	}
	data, status := c.access(a)
	if status == register.OK && len(data) > r.Room-register.HeaderSize {
		return register.Answer{Status: register.BadOutputLength}
	}
	return register.Answer{Status: status, Data: data}
}

// action does one method of one register.
type action func(data []byte) ([]byte, register.Status)

// entry is what a card can do with a register.
type entry struct {
	read, write action
	open        bool // for reading, while the card is locked
}

// entries are the registers of the card. Their numbers and those of MCAM are
// the same.
func (c *Card) entry(id register.ID) (entry, bool) {
	switch id {
	case register.IDMGIR:
		return entry{read: fixed(c.readMGIR), open: true}, true
	case register.IDMCAM:
		return entry{read: fixed(c.readMCAM), open: true}, true
	case register.IDMFSV:
		return entry{read: fixed(c.chip.readMFSV), write: fixed(c.chip.writeMFSV), open: true}, true
	case register.IDMQIS:
		return entry{read: fixed(c.readMQIS), open: true}, true
	case register.IDMLOCK:
		return entry{read: fixed(c.lock.read), write: fixed(c.lock.write), open: true}, true
	case register.IDMNVDA:
		return entry{read: c.readMNVDA, write: c.writeMNVDA, open: c.o.Traits.ReadsLocked}, true
	case register.IDMNVDI:
		return entry{write: c.writeMNVDI}, true
	case register.IDMNVIA:
		return entry{write: fixed(c.writeMNVIA)}, true
	case register.IDMNVQC:
		return entry{read: fixed(c.readMNVQC), open: true}, true
	case register.IDMNVGC:
		return entry{read: fixed(c.readMNVGC), open: true}, true
	case register.IDMNVGN:
		return entry{read: fixed(c.readMNVGN), open: c.o.Traits.ReadsLocked}, true
	case register.IDMFRL:
		return entry{read: fixed(c.readMFRL), write: fixed(c.writeMFRL), open: true}, true
	case register.IDMTCQ:
		return entry{read: fixed(c.readMTCQ)}, !c.o.Traits.NoChallenges
	default:
		return c.updateEntry(id)
	}
}

// updateEntry finds a register of components and tokens.
func (c *Card) updateEntry(id register.ID) (entry, bool) {
	switch id {
	case register.IDMCQS:
		return entry{read: fixed(c.readMCQS), open: true}, true
	case register.IDMCQI:
		return entry{read: fixed(c.readMCQI), open: true}, true
	case register.IDMCC:
		return entry{read: fixed(c.update.readMCC), write: fixed(c.update.writeMCC), open: true}, true
	case register.IDMCDA:
		return entry{write: fixed(c.update.writeMCDA)}, true
	case register.IDMDSR:
		return entry{read: fixed(c.sessions.readMDSR), write: fixed(c.sessions.writeMDSR), open: true}, true
	default:
		return entry{}, false
	}
}

// fixed turns what works on a layout into what works on bytes.
func fixed[T register.Layout](do func(T) (T, register.Status)) action {
	return func(data []byte) ([]byte, register.Status) {
		v, err := register.Decode[T](data)
		if err != nil {
			return nil, register.BadInputLength
		}
		v, status := do(v)
		out, err := register.Encode(v)
		if err != nil {
			return nil, register.InternalError
		}
		return out, status
	}
}

// access reads or writes a register, if there is one and the lock lets it.
func (c *Card) access(a register.Access) ([]byte, register.Status) {
	e, ok := c.entry(a.ID)
	if !ok {
		return nil, register.BadSystemState
	}
	do := e.read
	if a.Method == register.Write {
		do = e.write
	}
	switch {
	case do == nil || a.Method != register.Read && a.Method != register.Write:
		return nil, register.BadOperation
	case c.lock.state == register.Locked && !mayLocked(e, a):
		return nil, register.BadSystemState
	}
	return do(a.Data)
}

// mayLocked reports what goes while a card is locked: reading what is open, the
// lock itself, and a reset, which the power switch can do too.
func mayLocked(e entry, a register.Access) bool {
	if a.Method == register.Read {
		return e.open
	}
	return a.ID == register.IDMLOCK || a.ID == register.IDMFRL
}
