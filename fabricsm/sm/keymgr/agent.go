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

// op is what a request is for.
type op uint8

const (
	opCaps        op = iota // Get ClassPortInfo: what the class can do
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
	ring  *keys.Ring
	claim *claim        // what traps said that were not checked yet; nil: nothing
	due   time.Duration // of its timer; 0: none
	hold  time.Duration // no trap is reacted to before
	tell  time.Duration // violations are not told of before
	life  uint32        // changes when the port did: answers to what was asked before mean nothing
	pause uint8         // doublings of againMin so far
	tries uint8         // that the request was sent without an answer
	sets  uint8         // that the same was written in vain
	stage stage

	queued, out bool
	caps, more  bool // it is known what the class can do; of class 0x21 two attributes say it
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
	times      uint64 // violations that were told of
	falseTraps uint64
}

// runs reports an agent whose key can be changed. A switch may be at work for the
// other of its keys.
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

// anew begins with an agent from scratch, as after a restart of the device.
func (m *Manager) anew(x ref) {
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
		m.anewNode(d)
	}
	m.to(x, working)
	if m.ready {
		m.queue(x)
	}
}

// held reports that there is a key that the device has, or is to have.
func held(r *keys.Ring) bool {
	if r == nil {
		return false
	}
	rec := r.Record()
	return !rec.Current.IsZero() || !rec.Pending.IsZero()
}

// taking reports that the keys of a class are taken away.
func (m *Manager) taking(c *class) bool { return m.release.on || c.cfg.Enable == sm.KeyDisable }

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
		m.withhold(x, &kp, "") // whoever knows why tells it
	case m.taking(c):
		m.take(x, &kp)
	default:
		m.give(x, &kp)
	}
}

// give brings an agent to a key of its own.
func (m *Manager) give(x ref, kp *sm.KeyPort) {
	d, a, c := m.at(x)
	if !held(a.ring) && (m.explore(x, kp) || !m.plan(x, kp)) {
		return
	}
	key, settled := m.follow(x, kp)
	if !settled {
		return
	}
	switch {
	case !a.caps:
		m.get(x, opCaps, kp.LID, mad.AttrClassPortInfo, key)
	case x.class == cc && !a.more:
		m.get(x, opMore, kp.LID, mad.CCAttrEnhancedCongestionInfo, key)
	case a.poll:
		m.get(x, opPoll, kp.LID, c.mad.KeyAttr, key)
	case a.known && m.unprotected(x):
		if a.sets == maxSets {
			m.fail(x, kp, "it does not keep how its key protects")
			return
		}
		m.setKey(x, opProtect, kp.LID, key, key)
	case !a.trapsOurs:
		m.get(x, opTrapGet, kp.LID, mad.AttrClassPortInfo, key)
	case x.class == n2n && d.sw && m.workNode(x, kp, key):
	default:
		m.done(x)
	}
}

// explore finds out what a device can do that has no key of ours. It reports
// whether there is nothing more to do now.
func (m *Manager) explore(x ref, kp *sm.KeyPort) bool {
	_, a, c := m.at(x)
	switch {
	case !a.caps:
		m.get(x, opCaps, kp.LID, mad.AttrClassPortInfo, keys.Key{})
	case x.class == cc && !a.more:
		m.get(x, opMore, kp.LID, mad.CCAttrEnhancedCongestionInfo, keys.Key{})
	case !a.keyed:
		m.missing(x, false)
	case !a.read:
		m.get(x, opRead, kp.LID, c.mad.KeyAttr, keys.Key{})
	default:
		return false
	}
	return true
}

// plan begins to give a device a new key. That it has none was just read.
func (m *Manager) plan(x ref, kp *sm.KeyPort) bool {
	d, a, c := m.at(x)
	r := m.book.Open(c.kind, d.guid, kp.Place)
	m.book.Move(c.kind, d.guid, kp.Place) // of a device that was retired
	h, err := m.cfg.Source.Make(c.kind, d.guid, r.NextEpoch(), m.now)
	if err == nil {
		err = r.Plan(h)
	}
	if err != nil {
		m.fail(x, kp, err.Error())
		return false
	}
	a.ring = r
	r.Answered(keys.Seen{})
	return true
}

// follow does what the ring of a key wants. It gives the key for the header once
// the ring wants nothing more.
func (m *Manager) follow(x ref, kp *sm.KeyPort) (keys.Key, bool) {
	d, a, c := m.at(x)
	if kp.Bound {
		m.book.Move(c.kind, d.guid, kp.Place) // it follows the M_Key
	}
	s := a.ring.Next(kp.Place, true)
	m.saveRing(a.ring)
	switch s.Do {
	case keys.Ask:
		m.get(x, opAsk, kp.LID, c.mad.KeyAttr, s.Header)
	case keys.Program:
		m.setKey(x, opProgram, kp.LID, s.Header, s.New)
	case keys.Withhold:
		m.withhold(x, kp, "its key is withheld: it is not seen where it was given one")
	case keys.Stranded:
		m.fail(x, kp, "it answers under none of the keys it was given")
	case keys.Refusing:
		m.fail(x, kp, "it does not keep the key it is given")
	case keys.Foreign:
		m.fail(x, kp, "it has a key that somebody else gave it")
	case keys.Nothing:
		return a.ring.Now(kp.Place, true)
	}
	return keys.Key{}, false
}

// unprotected reports that a device that is on its key does not protect it as it
// should, or has violations to be cleared.
func (m *Manager) unprotected(x ref) bool {
	_, a, c := m.at(x)
	return a.clear || a.protect == c.cfg.Readable || a.lease != c.cfg.Lease
}

// get asks for an attribute.
func (m *Manager) get(x ref, o op, lid ib.LID, attr mad.AttrID, key keys.Key) {
	m.send(x, o, lid, mad.Header{Method: mad.MethodGet, Attr: attr}, key.M())
}

// setKey writes KeyInfo. In the three classes its fields have the same places.
func (m *Manager) setKey(x ref, o op, lid ib.LID, header, key keys.Key) {
	_, _, c := m.at(x)
	info := mad.N2NKeyInfo{ManagerKey: key.M()}
	if o != opClear {
		info.ProtectBit, info.LeasePeriod = !c.cfg.Readable, c.cfg.Lease
	}
	data := m.send(x, o, lid, mad.Header{Method: mad.MethodSet, Attr: c.mad.KeyAttr}, header.M())
	must(mad.Encode(data, &info))
}

func must(err error) {
	if err != nil {
		panic("keymgr: " + err.Error())
	}
}

// done ends the work on an agent that is as it should be.
func (m *Manager) done(x ref) {
	_, a, c := m.at(x)
	if single := held(a.ring) && !a.dual; a.counted != single {
		a.counted = single
		if single {
			c.single++
		} else {
			c.single--
		}
	}
	a.tries, a.sets, a.pause, a.withheld = 0, 0, 0, false
	m.to(x, idle)
	m.after(x, m.lookAgain(x))
	m.turned(x)
}

// lookAgain is the pause before a settled device is asked again: less than half
// of its lease, and not the same for all.
func (m *Manager) lookAgain(x ref) time.Duration {
	_, _, c := m.at(x)
	period := lookEvery
	if lease := time.Duration(c.cfg.Lease) * time.Second; lease > 0 && !m.taking(c) {
		period = min(period, lease/2)
	}
	return period - period/4*time.Duration(uint32(x.dev)*2654435761>>22)/1024
}

// missing ends the work on a device that does not have the class, or no keys, or
// does not answer.
func (m *Manager) missing(x ref, silent bool) {
	_, a, _ := m.at(x)
	a.silent, a.tries = silent, 0
	m.to(x, absent)
	m.after(x, m.backOff(a))
	m.turned(x)
}

// fail ends the work on an agent that cannot be brought to its key now.
func (m *Manager) fail(x ref, kp *sm.KeyPort, reason string) {
	d, a, c := m.at(x)
	first := a.pause == 0
	a.tries = 0
	m.to(x, failing)
	m.after(x, m.backOff(a))
	if first && reason != "" {
		m.event(&sm.ClassKeyProblem{Kind: c.kind, GUID: d.guid, Place: kp.Place, Reason: reason})
	}
	m.turned(x)
}

// withhold is fail for a device that is not where its keys may be shown. To look
// again costs no request.
func (m *Manager) withhold(x ref, kp *sm.KeyPort, reason string) {
	_, a, _ := m.at(x)
	m.fail(x, kp, reason)
	a.withheld, a.pause = true, 1
}

// backOff gives the pause before the next look, which grows.
func (m *Manager) backOff(a *agent) time.Duration {
	d := min(againMin<<a.pause, againMax)
	if d < againMax {
		a.pause++
	}
	return d
}

// due looks at an agent whose timer went off.
func (m *Manager) due(x ref) {
	d, a, _ := m.at(x)
	if !d.up {
		return
	}
	switch a.stage {
	case idle:
		a.poll = true
	case absent, failing:
		a.tries, a.sets, a.caps, a.more, a.read = 0, 0, false, false, false
		if a.ring != nil {
			a.ring.Again()
		}
		if d.node != nil && x.class == n2n {
			m.anewNode(d)
		}
	default:
	}
	m.queue(x)
}
