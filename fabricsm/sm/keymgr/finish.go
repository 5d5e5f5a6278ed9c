package keymgr

import (
	"time"

	"portcullis/fabricsm/sm"
)

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

// backOff returns the pause before the next request, which grows.
func (m *Manager) backOff(a *agent) time.Duration {
	d := min(againMin<<a.pause, againMax)
	if d < againMax {
		a.pause++
	}
	return d
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
			m.anewNode(d)
		}
	default:
	}
	m.queue(x)
}
