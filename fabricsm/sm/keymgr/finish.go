package keymgr

import "portcullis/fabricsm/sm"

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
	m.after(x, c.lookAgain(x.dev, m.release.taking(c)))
	m.turned(x)
}

// missing ends the work on a device that does not have the class, or no keys, or
// does not answer.
func (m *Manager) missing(x ref, silent bool) {
	_, a, _ := m.at(x)
	a.silent, a.tries = silent, 0
	m.to(x, absent)
	m.after(x, a.backOff())
	m.turned(x)
}

// fail ends the work on an agent that cannot be brought to its key now.
func (m *Manager) fail(x ref, kp *sm.KeyPort, reason string) {
	d, a, c := m.at(x)
	first := a.pause == 0
	a.tries = 0
	m.to(x, failing)
	m.after(x, a.backOff())
	if first && reason != "" {
		m.out.event(&sm.ClassKeyProblem{Kind: c.kind, GUID: d.guid, Place: kp.Place, Reason: reason})
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

// due processes an agent whose timer expired.
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
			m.cabling.fresh(d)
		}
	default:
	}
	m.queue(x)
}
