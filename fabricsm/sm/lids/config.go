package lids

import "portcullis/fabricsm/ib"

// Config says which LIDs end ports are to have.
type Config struct {
	// Preferred are LIDs for ports that have none saved, for example those of
	// another Subnet Manager that is replaced. They come before the LID that a
	// port shows by itself.
	Preferred []Preferred
}

// Preferred is the LID an end port is to have.
type Preferred struct {
	GUID ib.GUID // port GUID
	LID  ib.LID  // base LID
	LMC  ib.LMC  // of the 2^LMC LIDs it has had
}

// PreferAll takes the preferred LIDs of ports that have none saved, and saves
// them: they are preferred once, and then kept.
func (a *Assigner) PreferAll(c *Config) {
	for _, w := range c.Preferred {
		a.Prefer(w.GUID, w.LID, w.LMC)
	}
}
