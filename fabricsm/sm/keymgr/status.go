package keymgr

import (
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
)

// statusEvery is the shortest time between two statuses while something is under
// way.
const statusEvery = time.Second

// Status says how far the keys of classes are. It is not changed once given.
type Status struct {
	Time    time.Time
	Classes []ClassStatus // those that are not ignored
	Ages    []keys.Age    // as of the end of the last rotation, AgesAt, the oldest first
	AgesAt  time.Time
	Strays  uint64 // traps that could not be from a device with a key of ours
	Busy    bool

	Releasing bool // keys are given back, and none is given out
	Released  bool // they were, as far as devices could be asked
	Kept      int  // when Released: keys that devices still hold
}

// ClassStatus counts end ports by how far a class is at them.
type ClassStatus struct {
	Kind    keys.Kind
	Enable  sm.KeyEnable
	Settled int // as they should be
	Working int
	Absent  int // without the class, or without keys in it, or silent
	Failing int // see ClassKeyProblem
	Single  int // of Settled: they hold one key at a time, which is not changed
}

// tellStatus outputs a status if something changed.
func (m *Manager) tellStatus() {
	busy := m.classes.busy()
	if !m.changed || busy && m.now.Sub(m.shown) < statusEvery {
		return
	}
	m.changed, m.shown = false, m.now
	s := &Status{
		Time: m.now, Ages: m.rotation.ages, AgesAt: m.rotation.agesAt, Strays: m.strays, Busy: busy,
		Releasing: m.release.on, Released: m.release.told, Kept: m.release.kept,
	}
	for i := range m.classes {
		c := &m.classes[i]
		if c.cfg.Enable == sm.KeyIgnore {
			continue
		}
		s.Classes = append(s.Classes, ClassStatus{
			Kind: c.kind, Enable: c.cfg.Enable, Settled: c.stages[idle], Working: c.working(),
			Absent: c.stages[absent], Failing: c.stages[failing], Single: c.single,
		})
	}
	m.out.Status = s
}
