package keymgr

import (
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
)

// classTable is the management classes with keys, by index.
type classTable [classes]class

// working returns how many agents of a class are worked on, or wait.
func (c *class) working() int { return c.stages[working] + c.stages[waiting] }

// busy reports whether work is under way.
func (t *classTable) busy() bool {
	for i := range t {
		if t[i].working()+t[i].out > 0 {
			return true
		}
	}
	return false
}

// onlyTurning reports whether no work is under way except changes of keys.
func (t *classTable) onlyTurning() bool {
	for i := range t {
		if t[i].working() > t[i].turning {
			return false
		}
	}
	return true
}

// enabled lists the kinds of keys that devices get.
func (t *classTable) enabled() (kinds []keys.Kind) {
	for i := range t {
		if c := &t[i]; c.cfg.Enable == sm.KeyEnabled {
			if kinds = append(kinds, c.kind); i == n2n {
				kinds = append(kinds, keys.N2NNodeKey)
			}
		}
	}
	return kinds
}

// classOf returns the index of the class that has a kind of key.
func classOf(k keys.Kind) uint8 {
	switch k {
	case keys.CCKey:
		return cc
	case keys.VSKey:
		return vs
	default:
		return n2n
	}
}

// taking reports whether the keys of a class are removed.
func (r *release) taking(c *class) bool { return r.on || c.cfg.Enable == sm.KeyDisable }

// lookAgain is the pause before a settled device is asked again: less than half
// of its lease, and not the same for all.
func (c *class) lookAgain(dev int32, taking bool) time.Duration {
	period := lookEvery
	if lease := time.Duration(c.cfg.Lease) * time.Second; lease > 0 && !taking {
		period = min(period, lease/2)
	}
	return period - period/4*time.Duration(uint32(dev)*2654435761>>22)/1024
}
