package hcasim

import (
	"sync"

	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
)

// Card is an adapter. Its methods may be called from several goroutines; each
// is one step.
type Card struct {
	mu sync.Mutex
	o  Options

	// State that survives a loss of power.
	store store
	lock  lock
	chip  chip
	files fileVersions
	dice  dice

	// State that a loss of power removes.
	update   updater
	sessions sessions

	faults faults
	power  power
	resets int
	// resetWanted: the command under way ends with a reset.
	resetWanted bool
	onBoot      func()
}

// New makes a card as it comes out of its box, switched on.
func New(o Options) *Card {
	c := &Card{o: o, files: fileVersions{}, dice: dice{seed: o.Seed}}
	c.store = newStore(o, &c.power)
	c.lock.power = &c.power
	c.chip = newChip(o, &c.power)
	c.sessions = sessions{mac: o.Identity.BaseMAC, traits: o.Traits, dice: &c.dice}
	c.update = updater{dice: &c.dice, slow: o.Traits.Later, refuses: c.refuses, judge: c.judge}
	c.boot()
	return c
}

// OnReset sets what is called after each reset that a command caused, outside of
// the card's step: a fabric takes the links down and up again.
func (c *Card) OnReset(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onBoot = f
}

// Resets is how often the card booted, the first time included.
func (c *Card) Resets() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resets
}

// SMPFirewall reports that the card keeps subnet management from its host: the
// value of SM_DISABLE that is in force.
func (c *Card) SMPFirewall() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.smpFirewall()
}

func (c *Card) smpFirewall() bool { return c.smDisabled() && !c.o.Traits.LetsSMPs }

// smDisabled is bit 31 of the first dword.
func (c *Card) smDisabled() bool {
	data := c.store.globalInForce(smConfIndex)
	return len(data) > 0 && data[0]&0x80 != 0
}

// VFs is how many virtual functions are in force.
func (c *Card) VFs() uint16 {
	c.mu.Lock()
	defer c.mu.Unlock()
	data := c.store.globalInForce(globalPCIIndex)
	if len(data) < 8 || data[4]&0x80 == 0 {
		return 0
	}
	return uint16(data[6])<<8 | uint16(data[7])
}

// LockState is what MLOCK shows.
func (c *Card) LockState() register.LockState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lock.state
}

// LockAs locks or unlocks the card, without any checks, as if another host did it with a key that is unknown here.
// States 2 and 3 come from a management controller.
func (c *Card) LockAs(state register.LockState, key ib.LockKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lock.set(state, key)
}

// Version is the version of the firmware that runs.
func (c *Card) Version() Firmware {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chip.running
}

// Reset resets the firmware as a host does that is switched off and on.
func (c *Card) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.boot()
}

// boot loses what is volatile, and makes what waits for it hold.
func (c *Card) boot() {
	c.resets++
	c.update.flow = flow{}
	c.sessions.all = map[register.Session]*session{}
	c.power, c.resetWanted = power{}, false
	c.store.boot()
	c.chip.boot()
	c.lock.boot(c.o.Traits.ForgetsLock, c.store.globalInForce(secureHostIndex))
}
