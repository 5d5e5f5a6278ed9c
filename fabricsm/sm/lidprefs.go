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
		if c.lids.byGUID[w.GUID] != 0 {
			continue
		}
		if !w.GUID.Valid() || !ranges(w.LID, w.LMC) {
			c.event(&LIDRefused{GUID: w.GUID, LID: w.LID})
			continue
		}
		if owner := c.lids.ownerIn(w.LID, w.LMC); owner != 0 {
			c.event(&LIDRefused{GUID: w.GUID, LID: w.LID, Owner: owner})
			continue
		}
		c.lids.loadRange(w.GUID, w.LID, w.LMC)
		c.save(Fact{Kind: FactLID, GUID: w.GUID, LID: w.LID, LMC: w.LMC})
	}
}

// ownerIn returns the first owner of LIDs of a range, 0 if all are free.
func (s *lidSpace) ownerIn(l ib.LID, lmc ib.LMC) ib.GUID {
	for i := range ib.LID(1) << lmc {
		if g := s.at(l + i); g != 0 {
			return g
		}
	}
	return 0
}

// tellRefusedLID says that a port that showed a LID got another, because the one
// it showed belongs to a port that keeps it.
func (c *Core) tellRefusedLID(guid ib.GUID, found, got ib.LID) {
	if owner := c.lids.at(found); found.IsUnicast() && found != got && owner != 0 && owner != guid {
		c.event(&LIDRefused{GUID: guid, LID: found, Owner: owner})
	}
}
