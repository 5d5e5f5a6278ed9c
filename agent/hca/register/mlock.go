package register

import (
	"fmt"

	"portcullis/fabricsm/ib"
)

// LockState is what the host of a device may do to it. In a write of MLOCK it
// is the state wanted: only Unlocked and Locked.
type LockState uint8

// States.
const (
	Unlocked       LockState = 0
	Locked         LockState = 1 // neither settings nor firmware
	LockedFWUpdate LockState = 2 // no boot image; set out of band
	LockedHostCfg  LockState = 3 // no settings and tokens; set out of band
)

func (s LockState) String() string {
	switch s {
	case Unlocked:
		return "unlocked"
	case Locked:
		return "locked"
	case LockedFWUpdate:
		return "locked against firmware updates"
	case LockedHostCfg:
		return "locked against configuration"
	}
	return fmt.Sprintf("lock state %d", uint8(s))
}

// MLOCK locks a device with a key ("hw_access disable"), and unlocks it with
// the same one. A read shows the state and no key.
type MLOCK struct {
	State LockState  `reg:"0x00.0,8"` // "operation"
	Key   ib.LockKey `reg:"0x08.0,64"`
}

// ID implements Layout.
func (MLOCK) ID() ID { return IDMLOCK }

// Size implements Sized.
func (MLOCK) Size() int { return 0x10 }
