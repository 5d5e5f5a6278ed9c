package keymgr

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
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

// old counts the devices with keys of a kind that are older than they should be.
func (r *rotation) old(k keys.Kind) (n int) {
	for i := range r.ages {
		if r.ages[i].Kind == k {
			n++
		}
	}
	return n
}

func (m *Manager) startRotation(facts []sm.Fact) {
	if m.cfg.Rotation.Period == 0 {
		return
	}
	kinds := m.classes.enabled()
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
		m.out.event(&sm.ClassKeyProblem{Reason: err.Error()})
		return
	}
	m.rotation.rotator, m.rotation.due = r, true
}

// mayRotate reports whether no work is under way except changes of keys.
func (m *Manager) mayRotate() bool {
	return m.master && m.ready && m.settled && !m.release.on && m.classes.onlyTurning()
}

// rotate performs the due steps of the rotation of keys.
func (m *Manager) rotate() {
	r := &m.rotation
	if r.rotator == nil || !r.due && m.now.Before(r.at) || !m.mayRotate() {
		return
	}
	fleet := func(kind keys.Kind) []keys.Member { return m.fleet(m.book, kind) }
	for {
		r.due = false
		m.endNodeTurn()
		turn := r.rotator.Next(m.now, true, fleet)
		for _, y := range turn.Save {
			m.out.save(sm.RotationFactOf(y))
		}
		for _, s := range turn.Ended {
			r.ages = keys.Ages(m.book.Records(), m.now, m.cfg.Rotation.Period, func(k keys.Kind, guid ib.GUID) bool { return m.isDual(classOf(k), guid) })
			r.agesAt = m.now
			m.out.event(&keyevent.KeysRotated{Summary: s, Old: r.old(s.Kind)})
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

// turn begins the turn of one device.
func (m *Manager) turn(t keys.Target, do func(*keys.Ring) bool) {
	r := &m.rotation
	dev, ok := m.byGUID[t.GUID]
	ring := m.book.Ring(t.Kind, t.GUID)
	x := ref{dev, classOf(t.Kind)}
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
		m.out.event(&sm.ClassKeyProblem{Kind: t.Kind, GUID: t.GUID, Reason: err.Error()})
		return false
	}
	m.out.ring(ring)
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
	if r.node == 0 || c.working() > 0 {
		return
	}
	ring := m.book.Ring(keys.N2NNodeKey, r.node)
	ok := ring != nil && ring.Settled()
	r.rotator.Done(keys.N2NNodeKey, r.node, ok)
	r.node = 0
}
