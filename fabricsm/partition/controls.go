package partition

import "portcullis/fabricsm/ib"

// Controls are the decisions of planning that no setting removes. [Strict] is what every service plans with; drills inject
// others to show that each is needed.
type Controls interface {
	// Default returns the P_Key of the default partition for a port. full: the port is one of Rules.SM, or a switch while
	// Rules.FullSwitches holds.
	Default(full bool) ib.PKey
	// Capacity returns for how many P_Keys a device has room that declares room for some.
	Capacity(declared int) int
	// Keep returns the tables whose P_Keys keep their index.
	Keep(now Current) Current
}

// Strict has all controls.
type Strict struct{}

var _ Controls = Strict{}

// Default implements Controls.
func (Strict) Default(full bool) ib.PKey {
	if full {
		return ib.DefaultPKeyFull
	}
	return ib.DefaultPKeyLimited
}

// Capacity implements Controls.
func (Strict) Capacity(declared int) int { return declared }

// Keep implements Controls.
func (Strict) Keep(now Current) Current { return now }

func (r *Rules) controls() Controls {
	if r.Controls == nil {
		return Strict{}
	}
	return r.Controls
}
