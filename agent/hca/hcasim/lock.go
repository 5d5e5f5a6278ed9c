package hcasim

import (
	"encoding/binary"

	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
)

// lock is what MLOCK keeps.
type lock struct {
	power *power
	state register.LockState
	key   ib.LockKey
}

func (l *lock) set(state register.LockState, key ib.LockKey) { l.state, l.key = state, key }

func (l *lock) read(register.MLOCK) (register.MLOCK, register.Status) {
	return register.MLOCK{State: l.state}, register.OK
}

// write locks, or unlocks with the same key, which is then forgotten. Locking a locked card changes nothing and
// reports nothing, whatever the key. That is why a lock must be proven with its own key.
func (l *lock) write(m register.MLOCK) (register.MLOCK, register.Status) {
	out := register.MLOCK{State: l.state}
	switch {
	case m.State > register.Locked || l.state > register.Locked:
		return out, register.BadParameter
	case m.State == l.state:
		return out, register.OK
	case m.State == register.Locked && m.Key.IsZero():
		return out, register.BadParameter
	case m.State == register.Locked:
		l.power.durable(func() { l.set(register.Locked, m.Key) })
	case !m.Key.Equal(l.key):
		return out, register.BadParameter
	default:
		l.power.durable(func() { l.set(register.Unlocked, ib.LockKey{}) })
	}
	return register.MLOCK{State: l.state}, register.OK
}

// boot loads a lock that a file brought in the item nv_secure_host, once. forgets says that the card loses its lock by a
// reset.
func (l *lock) boot(forgets bool, data []byte) {
	if forgets {
		l.set(register.Unlocked, ib.LockKey{})
	}
	if len(data) < secureHostLength || l.state != register.Unlocked {
		return
	}
	if state := register.LockState(data[0]); state > register.Unlocked && state <= register.LockedHostCfg {
		l.set(state, ib.NewLockKey(binary.BigEndian.Uint64(data[8:])))
	}
}

// refuses reports that the lock keeps a component out (states 1 to 3).
func (l *lock) refuses(id register.Component) bool {
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
