// Package keyevent holds the reports about management keys of devices.
package keyevent

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
)

// KeyProblem says why a device does not have the M_Key that it should have.
type KeyProblem struct {
	GUID   ib.GUID  // port GUID, of a switch that of port 0
	Place  ib.Place // zero for a switch
	Reason string
}

// KeyExposed says that the M_Key of a device was shown to another one, which
// was met where that device belongs. The device gets another key.
type KeyExposed struct {
	GUID  ib.GUID // whose key it is
	Place ib.Place
	To    ib.GUID // the port that answered there
}

// KeysRotated says that a cycle of new keys has come to its end.
type KeysRotated struct {
	keys.Summary
	Old int // devices whose keys are older than they should be, all reasons together
}

// KeysReleased says that the keys were given back, as far as devices could be
// asked.
type KeysReleased struct {
	Released int
	Kept     int // devices that still hold their keys
}

// KeyMoved says that the M_Key of a device is bound to another place, because an
// operator said so.
type KeyMoved struct {
	GUID  ib.GUID
	Place ib.Place
}

// KeysResumed says that devices get keys again, after those were given back.
type KeysResumed struct{}

// ProtectionLapsed says that a device dropped the protection of its M_Key: the lease has run out after a violation that
// this SM did not answer in time. It is protected again at once.
type ProtectionLapsed struct {
	GUID  ib.GUID
	Place ib.Place // zero for a switch
}

// KeyRetired says that the M_Key of a device which left was destroyed.
type KeyRetired struct {
	GUID  ib.GUID
	Place ib.Place // where its key was bound to; zero: a switch
}

// KeyLent says that a tool has the M_Key of a device.
type KeyLent struct {
	GUID  ib.GUID
	Until time.Time
	To    string
}

// KeyLeaseEnded says that a key which was lent is changed now.
type KeyLeaseEnded struct {
	GUID ib.GUID
	To   string
	Late time.Duration // after its time: it could not be ended before
}

func (*KeyProblem) FabricEvent()       {}
func (*KeyExposed) FabricEvent()       {}
func (*KeysRotated) FabricEvent()      {}
func (*KeysReleased) FabricEvent()     {}
func (*KeyMoved) FabricEvent()         {}
func (*KeysResumed) FabricEvent()      {}
func (*ProtectionLapsed) FabricEvent() {}
func (*KeyRetired) FabricEvent()       {}
func (*KeyLent) FabricEvent()          {}
func (*KeyLeaseEnded) FabricEvent()    {}

func (e *KeyProblem) String() string {
	at := ""
	if !e.Place.IsZero() {
		at = fmt.Sprintf(" at %v", e.Place)
	}
	return fmt.Sprintf("port %v%v is not protected by an M_Key of ours: %s", e.GUID, at, e.Reason)
}

func (e *KeyExposed) String() string {
	return fmt.Sprintf("the M_Key of %v was shown to %v, which answers at %v where that belongs; it gets a new one", e.GUID, e.To, e.Place)
}

func (e *KeysRotated) String() string {
	return fmt.Sprintf("%d devices have a new %v of epoch %d; %d did not take theirs, %d cannot hold two at a time and keep the one they have",
		e.Done, e.Kind, e.Epoch, e.Failed, e.Single)
}

func (e *KeysReleased) String() string {
	if e.Kept == 0 {
		return fmt.Sprintf("%d devices gave their M_Key back; nothing is locked", e.Released)
	}
	return fmt.Sprintf("%d devices gave their M_Key back, %d could not be asked and keep theirs, which stay in the store", e.Released, e.Kept)
}

func (e *KeyMoved) String() string {
	return fmt.Sprintf("the M_Key of %v belongs to %v now: an operator said so", e.GUID, e.Place)
}

func (*KeysResumed) String() string { return "devices get M_Keys again" }

func (e *ProtectionLapsed) String() string {
	return fmt.Sprintf("port %v gave up the protection of its M_Key: its lease ran out; everybody could read the key, which is protected again now", e.GUID)
}

func (e *KeyRetired) String() string {
	at := ""
	if !e.Place.IsZero() {
		at = fmt.Sprintf(", which was at %v", e.Place)
	}
	return fmt.Sprintf("the M_Key of %v%s is destroyed: an operator said that it left for good", e.GUID, at)
}

func (e *KeyLent) String() string {
	return fmt.Sprintf("the M_Key of %v is lent to %s until %s", e.GUID, e.To, e.Until.UTC().Format(time.RFC3339))
}

func (e *KeyLeaseEnded) String() string {
	late := ""
	if e.Late > 0 {
		late = fmt.Sprintf(", %v late", e.Late.Round(time.Second))
	}
	return fmt.Sprintf("the time is over%s for which the M_Key of %v was lent to %s; it gets another one", late, e.GUID, e.To)
}
