package keymgr

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
)

// stage is how far an agent is.
type stage uint8

const (
	off     stage = iota // its port is not there, or the class is ignored
	working              // something is to be done
	waiting              // for the node keys of neighbours
	idle                 // all is as it should be
	absent               // the device does not have the class, or no keys in it, or does not answer
	failing              // it cannot be given its key now

	numStages
)

// op is the purpose of a request.
type op uint8

const (
	opCaps        op = iota // Get ClassPortInfo: the capabilities of the class
	opMore                  // Get EnhancedCongestionInfo: the same, of class 0x21
	opRead                  // Get KeyInfo of a device that has no key of ours
	opAsk                   // Get KeyInfo, as the Ring wants
	opProgram               // Set KeyInfo, as the Ring wants
	opPoll                  // Get KeyInfo of a settled device
	opProtect               // Set KeyInfo: the same key, with what protects it
	opClear                 // Set KeyInfo: no key
	opTrapGet               // Get ClassPortInfo: where traps go
	opTrapSet               // Set ClassPortInfo
	opBlock                 // Get NeighborsInfo
	opBlockSet              // Set NeighborsInfo
	opNodeAsk               // Get NeighborsInfo block 0, as the Ring of the node key wants
	opNodeProgram           // Set NeighborsInfo block 0, the same
)

// agent is one class at one end port.
type agent struct {
	ring *keys.Ring

	claims claims

	due   time.Duration // of its timer; 0: none
	hold  time.Duration // no trap is reacted to before
	tell  time.Duration // violations are not reported before
	life  uint32        // changes when the port did: answers to earlier requests are ignored
	pause uint8         // doublings of againMin so far
	tries uint8         // that the request was sent without an answer
	sets  uint8         // writes of the same data without effect
	stage stage

	queued, out bool
	caps, more  bool // the capabilities of the class are known; class 0x21 has two attributes of them
	keyed, dual bool // it has keys; it holds two
	read        bool // the key of a device without one of ours was read
	silent      bool // it did not answer, when absent
	poll        bool // it is to be asked for its key
	trapsOurs   bool // its traps come to us
	turning     bool // its key is being changed
	counted     bool // among the class's single

	parked   bool // it waits until the fabric is settled
	guessed  bool // it was asked under a key that it does not have
	clear    bool // its counters of violations are to be cleared
	withheld bool // it is failing because it is not where it belongs

	known      bool // what follows was read
	bare       bool // it shows no key
	protect    bool
	lease      uint16
	times      uint64 // violations that were reported
	falseTraps uint64
}

// runs reports whether the key of an agent can be changed. A switch may be working on the other of its keys.
func (a *agent) runs() bool { return a.stage == idle || a.stage == working || a.stage == waiting }

// device is an end port.
type device struct {
	guid   ib.GUID // 0: the place is free
	doubts uint64
	port   int32 // topo.PortID
	lid    ib.LID
	sw     bool
	up     bool
	agents [classes]agent
	node   *node // of a switch with class 0x0C
}

func (m *Manager) at(x ref) (*device, *agent, *class) {
	d := &m.devices[x.dev]
	return d, &d.agents[x.class], &m.classes[x.class]
}

// to moves an agent to a stage.
func (m *Manager) to(x ref, s stage) {
	_, a, c := m.at(x)
	if a.stage == s {
		return
	}
	c.stages[a.stage]--
	c.stages[s]++
	a.stage = s
	m.changed = true
}

// resetAgent resets an agent, as after a restart of the device.
func (m *Manager) resetAgent(x ref) {
	d, a, c := m.at(x)
	fresh := agent{life: a.life + 1, stage: a.stage, queued: a.queued, hold: a.hold, tell: a.tell, times: a.times, falseTraps: a.falseTraps, turning: a.turning}
	if a.counted {
		c.single--
	}
	*a = fresh
	if c.cfg.Enable == sm.KeyIgnore {
		return
	}
	if a.ring = m.book.Ring(c.kind, d.guid); a.ring != nil {
		a.ring.Again()
	}
	if x.class == n2n && d.sw {
		m.cabling.fresh(d)
	}
	m.to(x, working)
	if m.ready {
		m.queue(x)
	}
}

// held reports whether there is a key that the device has, or is planned to have.
func held(r *keys.Ring) bool {
	if r == nil {
		return false
	}
	rec := r.Record()
	return !rec.Current.IsZero() || !rec.Pending.IsZero()
}

// work sends the one request that is missing for an agent to be as it should, if
// there is one.
func (m *Manager) work(x ref) {
	d, a, c := m.at(x)
	if a.out || a.stage == off || !d.up {
		return
	}
	kp, ok := m.fabric.KeyPort(portID(d.port))
	if !ok || kp.GUID != d.guid || !kp.Active {
		m.down(x.dev) // the next view says what became of it
		return
	}
	if a.stage != working && a.stage != idle {
		m.to(x, working)
	}
	switch {
	case !kp.Verified:
		m.withhold(x, &kp, "") // the part that knows the reason reports it
	case m.release.taking(c):
		m.take(x, &kp)
	default:
		m.give(x, &kp)
	}
}

// backOff returns the pause before the next request, which grows.
func (a *agent) backOff() time.Duration {
	d := min(againMin<<a.pause, againMax)
	if d < againMax {
		a.pause++
	}
	return d
}

// again has a device asked which key it is on, if it may have any.
func (a *agent) again() {
	if held(a.ring) {
		a.ring.Again()
	} else {
		a.read = false
	}
}

// unprotected reports whether a device that is on its key does not protect it as configured, or has violations to be
// cleared.
func (a *agent) unprotected(cfg *sm.ClassKeyConfig) bool {
	return a.clear || a.protect == cfg.Readable || a.lease != cfg.Lease
}

// ofSwitch reports whether keys are those of a switch, which are bound to no place, while the port that shows its GUID is
// not one of a switch.
func ofSwitch(r *keys.Ring, kp *sm.KeyPort) bool {
	rec := r.Record()
	return !kp.Switch && rec.Place.IsZero() && held(r)
}

// trapsTo has the traps of a device go to a LID of ours, as limited members of the default partition, which all of them are
// at least. It reports whether they did.
func trapsTo(lid ib.LID, p *mad.ClassPortInfo) (same bool) {
	was := *p
	p.TrapGID, p.TrapTC, p.TrapSL, p.TrapFL, p.TrapHL = ib.GID{}, 0, 0, 0, 0
	p.TrapLID, p.TrapPKey, p.TrapQP, p.TrapQKey = lid, ib.DefaultPKeyLimited, 1, gsiQKey
	return was == *p
}
