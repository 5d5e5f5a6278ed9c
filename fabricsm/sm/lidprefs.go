package sm

import (
	"fmt"

	"portcullis/fabricsm/ib"
)

// LIDConfig says which LIDs end ports are to have.
type LIDConfig struct {
	// Preferred are LIDs for ports that have none saved, for example those of
	// another Subnet Manager that is replaced. They come before the LID that a
	// port shows by itself.
	Preferred []PreferredLID
}

// PreferredLID is the LID an end port is to have.
type PreferredLID struct {
	GUID ib.GUID // port GUID
	LID  ib.LID  // base LID
	LMC  ib.LMC  // of the 2^LMC LIDs it has had
}

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

// preferLIDs takes the preferred LIDs of ports that have none saved, and saves
// them: they are preferred once, and then kept.
func (c *Core) preferLIDs() {
	for _, w := range c.cfg.LIDs.Preferred {
		c.lids.Prefer(w.GUID, w.LID, w.LMC)
	}
}
