package card

import (
	"encoding/binary"

	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
)

// lock is what MLOCK keeps.
type lock struct {
	state register.LockState
	key   ib.LockKey
}

func (c *Card) readMLOCK(register.MLOCK) (register.MLOCK, register.Status) {
	return register.MLOCK{State: c.lock.state}, register.OK
}

// writeMLOCK locks, or unlocks with the same key, which is then forgotten. Locking a locked card changes nothing and
// reports nothing, whatever the key. That is why a lock must be proven with its own key.
func (c *Card) writeMLOCK(m register.MLOCK) (register.MLOCK, register.Status) {
	out := register.MLOCK{State: c.lock.state}
	switch {
	case m.State > register.Locked || c.lock.state > register.Locked:
		return out, register.BadParameter
	case m.State == c.lock.state:
		return out, register.OK
	case m.State == register.Locked && m.Key.IsZero():
		return out, register.BadParameter
	case m.State == register.Locked:
		c.durable(func() { c.lock = lock{register.Locked, m.Key} })
	case !m.Key.Equal(c.lock.key):
		return out, register.BadParameter
	default:
		c.durable(func() { c.lock = lock{} })
	}
	return register.MLOCK{State: c.lock.state}, register.OK
}

// bootLock loads a lock that a file brought in the item nv_secure_host, once.
func (c *Card) bootLock() {
	if c.o.Traits.ForgetsLock {
		c.lock = lock{}
	}
	data := c.store.globalInForce(secureHostIndex)
	if len(data) < secureHostLength || c.lock.state != register.Unlocked {
		return
	}
	if state := register.LockState(data[0]); state > register.Unlocked && state <= register.LockedHostCfg {
		c.lock = lock{state, ib.NewLockKey(binary.BigEndian.Uint64(data[8:]))}
	}
}

// refuses reports that the lock keeps a component out (states 1 to 3).
func (l lock) refuses(id register.Component) bool {
	switch l.state {
	case register.Unlocked:
		return false
	case register.LockedFWUpdate:
		return id == register.BootImage
	case register.LockedHostCfg:
		return id != register.BootImage
	default:
		return true
	}
}
