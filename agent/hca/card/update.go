package card

import (
	"portcullis/agent/hca/register"
	"portcullis/firmware/nvconfig"
)

// update is the machine of MCC, which takes components. It is volatile.
type update struct {
	state  register.ControlState
	handle uint32 // of the process that drives it; 0: none
	err    register.MCCError
	// later is what ends the step that is under way (Traits.Later).
	later func()

	component register.Component
	length    uint32
	data      []byte
	accepted  func() // makes what was verified hold
	// shown is how the update of each component stands.
	shown map[register.Component]register.ComponentState
}

// ownerICMD is the owner of the handle, as MCC shows it.
const ownerICMD = 5

// readMCC shows the machine. One that is idle names the handle to lock it with.
func (c *Card) readMCC(register.MCC) (register.MCC, register.Status) {
	if later := c.update.later; later != nil {
		c.update.later = nil
		later()
	}
	return c.shownMCC(), register.OK
}

func (c *Card) shownMCC() register.MCC {
	u := &c.update
	m := register.MCC{State: u.state, Error: u.err, Handle: u.handle}
	if u.state == register.StateIdle {
		m.Handle = c.nextHandle()
	} else {
		m.OwnerType = ownerICMD
	}
	return m
}

// nextHandle changes with each that was taken.
func (c *Card) nextHandle() uint32 { return uint32(c.o.Seed+c.drawn)&0x7FFFFF | 0x800000 }

// HoldUpdate makes another process, for example a management controller, drive the machine until the next reset.
func (c *Card) HoldUpdate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.update = update{state: register.StateLocked, handle: 1}
}

// writeMCC does an instruction.
func (c *Card) writeMCC(m register.MCC) (register.MCC, register.Status) {
	u := &c.update
	if u.later != nil {
		return c.shownMCC(), register.Busy
	}
	switch m.Instruction {
	case register.LockHandle:
		return c.takeHandle(m)
	case register.ForceRelease:
		c.update = update{shown: u.shown}
		return c.shownMCC(), register.OK
	default:
	}
	if u.state == register.StateIdle || m.Handle != u.handle {
		return c.failed(register.MCCFailed)
	}
	u.err = register.MCCOK
	switch m.Instruction {
	case register.ReleaseHandle:
		c.update = update{shown: u.shown}
		return c.shownMCC(), register.OK
	case register.UpdateComponent:
		return c.startComponent(m)
	case register.VerifyComponent:
		return c.verifyComponent()
	case register.Activate:
		return c.activate()
	case register.Cancel:
		u.state, u.data, u.accepted = register.StateLocked, nil, nil
		return c.shownMCC(), register.OK
	case register.CheckHandle:
		return c.shownMCC(), register.OK
	default:
		return c.shownMCC(), register.BadParameter
	}
}

func (c *Card) takeHandle(m register.MCC) (register.MCC, register.Status) {
	switch {
	case c.update.state != register.StateIdle:
		return c.shownMCC(), register.Busy
	case m.Handle != c.nextHandle():
		return c.failed(register.MCCFailed)
	}
	c.drawn++
	c.update = update{state: register.StateLocked, handle: m.Handle, shown: c.update.shown}
	return c.shownMCC(), register.OK
}

// failed ends the flow: the handle is free again, and the error is shown.
func (c *Card) failed(err register.MCCError) (register.MCC, register.Status) {
	c.update = update{err: err, shown: c.update.shown}
	return c.shownMCC(), register.BadParameter
}

func (c *Card) startComponent(m register.MCC) (register.MCC, register.Status) {
	u := &c.update
	if u.state != register.StateLocked || int(m.Index) >= len(components) || m.Device != 0 {
		return c.failed(register.MCCFailed)
	}
	id := components[m.Index]
	switch {
	case c.lock.refuses(id), id == register.BootImage && c.denied(fwUpdate):
		return c.failed(register.MCCFailed)
	case m.Length == 0 || m.Length > maxLength(id):
		return c.failed(register.RejectedBadFormat)
	}
	u.component, u.length, u.data, u.accepted = id, m.Length, nil, nil
	c.step(register.StateInitialize, func() { c.update.state = register.StateDownload })
	c.show(id, register.ComponentInProgress)
	return c.shownMCC(), register.OK
}

// step does something at once, or with the next look at the machine.
func (c *Card) step(meanwhile register.ControlState, do func()) {
	if !c.o.Traits.Later {
		do()
		return
	}
	c.update.state, c.update.later = meanwhile, do
}

func (c *Card) show(id register.Component, s register.ComponentState) {
	if c.update.shown == nil {
		c.update.shown = map[register.Component]register.ComponentState{}
	}
	c.update.shown[id] = s
}

func (c *Card) writeMCDA(m register.MCDA) (register.MCDA, register.Status) {
	u := &c.update
	block, ok := m.Block()
	switch {
	case u.state != register.StateDownload || m.Handle != u.handle:
		return m, register.BadResourceState
	case !ok || int64(m.Offset) != int64(len(u.data)) || len(u.data)+len(block) > int(roundUp(u.length)):
		return m, register.BadParameter
	}
	u.data = append(u.data, block...)
	return m, register.OK
}

// roundUp is the length in whole dwords, as blocks have them.
func roundUp(n uint32) uint32 { return (n + 3) &^ 3 }

// verifyComponent judges what was loaded.
func (c *Card) verifyComponent() (register.MCC, register.Status) {
	u := &c.update
	if u.state != register.StateDownload || len(u.data) < int(u.length) {
		return c.failed(register.RejectedBadFormat)
	}
	accepted, why := c.judge(u.component, u.data[:u.length])
	if c.o.Traits.Later {
		c.step(register.StateVerify, func() { c.verified(accepted, why) })
		return c.shownMCC(), register.OK
	}
	c.verified(accepted, why)
	if why != register.MCCOK {
		return c.shownMCC(), register.BadParameter
	}
	return c.shownMCC(), register.OK
}

func (c *Card) verified(accepted func(), why register.MCCError) {
	id := c.update.component
	if why != register.MCCOK {
		c.show(id, register.ComponentFailed)
		c.update = update{err: why, shown: c.update.shown}
		return
	}
	c.update.state, c.update.accepted, c.update.data = register.StateLocked, accepted, nil
	c.show(id, register.ComponentApplied)
}

func (c *Card) activate() (register.MCC, register.Status) {
	u := &c.update
	if u.state != register.StateLocked || u.accepted == nil {
		return c.failed(register.MCCFailed)
	}
	u.accepted()
	u.accepted = nil
	c.show(u.component, register.ComponentActivePendingReset)
	return c.shownMCC(), register.OK
}

// judge says what makes a component hold, or why it is refused.
func (c *Card) judge(id register.Component, data []byte) (func(), register.MCCError) {
	if id == register.BootImage {
		return c.judgeImage(data)
	}
	f, err := nvconfig.Parse(data)
	if err != nil {
		return nil, register.RejectedBadFormat
	}
	if register.Component(f.Component.Number()) != id {
		return nil, register.RejectedNotApplicable
	}
	if why := c.applicable(f); why != register.MCCOK {
		return nil, why
	}
	if f.Component.IsToken() {
		return c.judgeToken(id, f)
	}
	return c.judgeSettings(id, f)
}
