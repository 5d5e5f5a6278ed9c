package sm

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/lids"
)

// LIDConfig says which LIDs end ports are to have.
type LIDConfig = lids.Config

// PreferredLID is the LID an end port is to have.
type PreferredLID = lids.Preferred

// LIDRefused says that a port does not get the LID it was to have, or has.
type LIDRefused struct {
	GUID  ib.GUID // port GUID
	LID   ib.LID
	Owner ib.GUID // port that has that LID, 0 if that is not the cause
}

func (*LIDRefused) FabricEvent() {}

// String implements fmt.Stringer.
func (e *LIDRefused) String() string {
	if e.Owner == 0 {
		return fmt.Sprintf("port %v cannot have LID %v: it is no unicast LID, or not a multiple of how many it has", e.GUID, e.LID)
	}
	return fmt.Sprintf("port %v cannot have LID %v: it belongs to port %v", e.GUID, e.LID, e.Owner)
}
