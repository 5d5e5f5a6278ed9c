package hcasim

import (
	"portcullis/agent/hca/register"
	"portcullis/firmware/nvconfig"
)

// updater is the machine of MCC, which takes components.
type updater struct {
	dice *dice
	slow bool // no step ends in the command that asks for it (Traits.Later)
	// refuses reports whether a component may not be loaded now.
	refuses func(register.Component) bool
	// judge says what makes a component hold, or why it is refused.
	judge func(register.Component, []byte) (func(), register.MCCError)

	flow
}

// flow is how far an update has come. It is volatile.
type flow struct {
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
func (u *updater) readMCC(register.MCC) (register.MCC, register.Status) {
	if later := u.later; later != nil {
		u.later = nil
		later()
	}
	return u.shownMCC(), register.OK
}

func (u *updater) shownMCC() register.MCC {
	m := register.MCC{State: u.state, Error: u.err, Handle: u.handle}
	if u.state == register.StateIdle {
		m.Handle = u.dice.handle()
	} else {
		m.OwnerType = ownerICMD
	}
	return m
}

// HoldUpdate makes another process, for example a management controller, drive the machine until the next reset.
func (c *Card) HoldUpdate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.update.flow = flow{state: register.StateLocked, handle: 1}
}

// writeMCC does an instruction.
func (u *updater) writeMCC(m register.MCC) (register.MCC, register.Status) {
	if u.later != nil {
		return u.shownMCC(), register.Busy
	}
	switch m.Instruction {
	case register.LockHandle:
		return u.takeHandle(m)
	case register.ForceRelease:
		u.flow = flow{shown: u.shown}
		return u.shownMCC(), register.OK
	default:
	}
	if u.state == register.StateIdle || m.Handle != u.handle {
		return u.failed(register.MCCFailed)
	}
	u.err = register.MCCOK
	switch m.Instruction {
	case register.ReleaseHandle:
		u.flow = flow{shown: u.shown}
		return u.shownMCC(), register.OK
	case register.UpdateComponent:
		return u.startComponent(m)
	case register.VerifyComponent:
		return u.verifyComponent()
	case register.Activate:
		return u.activate()
	case register.Cancel:
		u.state, u.data, u.accepted = register.StateLocked, nil, nil
		return u.shownMCC(), register.OK
	case register.CheckHandle:
		return u.shownMCC(), register.OK
	default:
		return u.shownMCC(), register.BadParameter
	}
}

func (u *updater) takeHandle(m register.MCC) (register.MCC, register.Status) {
	switch {
	case u.state != register.StateIdle:
		return u.shownMCC(), register.Busy
	case m.Handle != u.dice.handle():
		return u.failed(register.MCCFailed)
	}
	u.dice.drawn++
	u.flow = flow{state: register.StateLocked, handle: m.Handle, shown: u.shown}
	return u.shownMCC(), register.OK
}

// failed ends the flow: the handle is free again, and the error is shown.
func (u *updater) failed(err register.MCCError) (register.MCC, register.Status) {
	u.flow = flow{err: err, shown: u.shown}
	return u.shownMCC(), register.BadParameter
}

func (u *updater) startComponent(m register.MCC) (register.MCC, register.Status) {
	if u.state != register.StateLocked || int(m.Index) >= len(components) || m.Device != 0 {
		return u.failed(register.MCCFailed)
	}
	id := components[m.Index]
	switch {
	case u.refuses(id):
		return u.failed(register.MCCFailed)
	case m.Length == 0 || m.Length > maxLength(id):
		return u.failed(register.RejectedBadFormat)
	}
	u.component, u.length, u.data, u.accepted = id, m.Length, nil, nil
	u.step(register.StateInitialize, func() { u.state = register.StateDownload })
	u.show(id, register.ComponentInProgress)
	return u.shownMCC(), register.OK
}

// step does something at once, or with the next look at the machine.
func (u *updater) step(meanwhile register.ControlState, do func()) {
	if !u.slow {
		do()
		return
	}
	u.state, u.later = meanwhile, do
}

func (u *updater) show(id register.Component, s register.ComponentState) {
	if u.shown == nil {
		u.shown = map[register.Component]register.ComponentState{}
	}
	u.shown[id] = s
}

func (u *updater) writeMCDA(m register.MCDA) (register.MCDA, register.Status) {
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
func (u *updater) verifyComponent() (register.MCC, register.Status) {
	if u.state != register.StateDownload || len(u.data) < int(u.length) {
		return u.failed(register.RejectedBadFormat)
	}
	accepted, why := u.judge(u.component, u.data[:u.length])
	if u.slow {
		u.step(register.StateVerify, func() { u.verified(accepted, why) })
		return u.shownMCC(), register.OK
	}
	u.verified(accepted, why)
	if why != register.MCCOK {
		return u.shownMCC(), register.BadParameter
	}
	return u.shownMCC(), register.OK
}

func (u *updater) verified(accepted func(), why register.MCCError) {
	id := u.component
	if why != register.MCCOK {
		u.show(id, register.ComponentFailed)
		u.flow = flow{err: why, shown: u.shown}
		return
	}
	u.state, u.accepted, u.data = register.StateLocked, accepted, nil
	u.show(id, register.ComponentApplied)
}

func (u *updater) activate() (register.MCC, register.Status) {
	if u.state != register.StateLocked || u.accepted == nil {
		return u.failed(register.MCCFailed)
	}
	u.accepted()
	u.accepted = nil
	u.show(u.component, register.ComponentActivePendingReset)
	return u.shownMCC(), register.OK
}

// refuses reports whether the lock, or a privilege of the host, keeps a component out.
func (c *Card) refuses(id register.Component) bool {
	return c.lock.refuses(id) || id == register.BootImage && c.denied(fwUpdate)
}

// judge says what makes a component hold, or why it is refused.
func (c *Card) judge(id register.Component, data []byte) (func(), register.MCCError) {
	if id == register.BootImage {
		return c.chip.judgeImage(data)
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
		return c.sessions.judgeToken(id, f)
	}
	return c.judgeSettings(id, f)
}
