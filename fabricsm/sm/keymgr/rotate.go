package keymgr

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
)

// rotation changes keys from time to time.
type rotation struct {
	rotator *keys.Rotator // nil: never
	at      time.Time     // when something is due
	due     bool          // something may be
	node    ib.GUID       // switch whose node key is being changed, 0: none
	ages    []keys.Age    // as of the end of the last cycle
	agesAt  time.Time
}

func (m *Manager) startRotation(facts []sm.Fact) {
	if m.cfg.Rotation.Period == 0 {
		return
	}
	var kinds []keys.Kind
	for i := range m.classes {
		if c := &m.classes[i]; c.cfg.Enable == sm.KeyEnabled {
			if kinds = append(kinds, c.kind); i == n2n {
				kinds = append(kinds, keys.N2NNodeKey)
			}
		}
	}
	last := make(map[keys.Kind]keys.Cycle)
	for i := range facts {
		if y := facts[i].Cycle; y != nil && ofClass(y.Kind) {
			last[y.Kind] = *y
		}
	}
	var saved []keys.Cycle
	for _, k := range keys.Kinds() {
		if y, ok := last[k]; ok {
			saved = append(saved, y)
		}
	}
	r, err := keys.NewRotator(m.cfg.Rotation, kinds, m.now, saved)
	if err != nil {
		m.event(&sm.ClassKeyProblem{Reason: err.Error()})
		return
	}
	m.rotation.rotator, m.rotation.due = r, true
}

// mayRotate reports whether no work is under way except changes of keys.
func (m *Manager) mayRotate() bool {
	if !m.master || !m.ready || !m.settled || m.release.on {
		return false
	}
	for i := range m.classes {
		if c := &m.classes[i]; c.stages[working]+c.stages[waiting] > c.turning {
			return false
		}
	}
	return true
}

// rotate performs the due steps of the rotation of keys.
func (m *Manager) rotate() {
	r := &m.rotation
	if r.rotator == nil || !r.due && m.now.Before(r.at) || !m.mayRotate() {
		return
	}
	for {
		r.due = false
		m.endNodeTurn()
		turn := r.rotator.Next(m.now, true, m.fleet)
		for _, y := range turn.Save {
			m.save(sm.RotationFactOf(y))
		}
		for _, s := range turn.Ended {
			r.ages = keys.Ages(m.book.Records(), m.now, m.cfg.Rotation.Period, m.isDual)
			r.agesAt = m.now
			m.event(&sm.KeysRotated{Summary: s, Old: m.old(s.Kind)})
			m.changed = true
		}
		for _, t := range turn.Change {
			m.turn(t, func(ring *keys.Ring) bool { return m.change(ring, t) })
		}
		for _, t := range turn.Commit {
			m.turn(t, func(ring *keys.Ring) bool { ring.Commit(); return true })
		}
		r.at = turn.Wake
		if r.at.IsZero() {
			r.at = m.now.Add(time.Hour) // only after Done; never, that is
		}
		if !r.due {
			return
		}
	}
}

// old counts the devices with keys of a kind that are older than they should be.
func (m *Manager) old(k keys.Kind) (n int) {
	for i := range m.rotation.ages {
		if m.rotation.ages[i].Kind == k {
			n++
		}
	}
	return n
}

// turn begins the turn of one device.
func (m *Manager) turn(t keys.Target, do func(*keys.Ring) bool) {
	r := &m.rotation
	dev, ok := m.byGUID[t.GUID]
	ring := m.book.Ring(t.Kind, t.GUID)
	x := ref{dev, m.classOf(t.Kind)}
	if !ok || ring == nil || !m.devices[dev].agents[x.class].runs() || !do(ring) {
		r.rotator.Done(t.Kind, t.GUID, false)
		r.due = true
		return
	}
	_, a, c := m.at(x)
	if t.Kind == keys.N2NNodeKey {
		r.node = t.GUID
	} else if !a.turning {
		a.turning = true
		c.turning++
	}
	m.to(x, working)
	m.queue(x)
}

func (m *Manager) classOf(k keys.Kind) uint8 {
	switch k {
	case keys.CCKey:
		return cc
	case keys.VSKey:
		return vs
	default:
		return n2n
	}
}

// change plans the key of an epoch, unless an earlier change goes on.
func (m *Manager) change(ring *keys.Ring, t keys.Target) bool {
	rec := ring.Record()
	if !rec.Pending.IsZero() {
		return true
	}
	h, err := m.cfg.Source.Make(t.Kind, t.GUID, t.Epoch, m.now)
	if err == nil {
		err = ring.Plan(h)
	}
	if err != nil {
		m.event(&sm.ClassKeyProblem{Kind: t.Kind, GUID: t.GUID, Reason: err.Error()})
		return false
	}
	m.saveRing(ring)
	return true
}

// turned ends the turn of an agent whose work has ended, and lets others know that
// its node key is clear.
func (m *Manager) turned(x ref) {
	d, a, c := m.at(x)
	m.rotation.due = true
	if x.class == n2n && d.node != nil {
		m.decide(x.dev)
	}
	if !a.turning {
		return
	}
	a.turning = false
	c.turning--
	m.rotation.rotator.Done(c.kind, d.guid, a.stage == idle && a.ring.Settled())
}

// endNodeTurn ends the turn of a switch once its neighbours have its new key: then no agent is working.
func (m *Manager) endNodeTurn() {
	r, c := &m.rotation, &m.classes[n2n]
	if r.node == 0 || c.stages[working]+c.stages[waiting] > 0 {
		return
	}
	ring := m.book.Ring(keys.N2NNodeKey, r.node)
	ok := ring != nil && ring.Settled()
	r.rotator.Done(keys.N2NNodeKey, r.node, ok)
	r.node = 0
}

// fleet lists the devices that have keys of a kind.
func (m *Manager) fleet(kind keys.Kind) []keys.Member {
	var out []keys.Member
	class := m.classOf(kind)
	for i := range m.devices {
		d := &m.devices[i]
		if !d.agents[class].runs() {
			continue
		}
		ring := m.book.Ring(kind, d.guid)
		if !held(ring) {
			continue
		}
		rec := ring.Record()
		out = append(out, keys.Member{
			GUID: d.guid, Epoch: rec.Current.Epoch, Keyed: !rec.Current.IsZero(), Prior: !rec.Previous.IsZero(), Dual: d.agents[class].dual,
		})
	}
	return out
}

func (m *Manager) isDual(kind keys.Kind, guid ib.GUID) bool {
	dev, ok := m.byGUID[guid]
	return ok && m.devices[dev].agents[m.classOf(kind)].dual
}
