package adoption

import (
	"cmp"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
)

// Bounds of one adoption.
const (
	MaxMemberships = 4096 // of all its ports: all or none of them start, in one transaction
	MaxPKeys       = 126  // of one port
	MinTime        = time.Hour
	MaxTime        = 90 * 24 * time.Hour
)

// warnBefore is the longest time before the deadline at which an event names it.
const warnBefore = 48 * time.Hour

// Port is a port with the P_Keys that it had, each with the membership bit.
type Port struct {
	GUID   ib.GUID   `json:"guid"`
	Place  ib.Place  `json:"place"`
	PKeys  []ib.PKey `json:"p_keys"`
	Device string    `json:"device,omitempty"` // as the device described itself: it proves nothing
}

// Membership is one P_Key of one port at its place.
type Membership struct {
	GUID  ib.GUID
	Place ib.Place
	PKey  ib.PKey // with the membership bit
}

// Memberships returns those of some ports, by port and P_Key.
func Memberships(ports []Port) []Membership {
	var out []Membership
	for i := range ports {
		for _, k := range ports[i].PKeys {
			out = append(out, Membership{GUID: ports[i].GUID, Place: ports[i].Place, PKey: k})
		}
	}
	slices.SortFunc(out, func(a, b Membership) int { return cmp.Or(cmp.Compare(a.GUID, b.GUID), cmp.Compare(a.PKey, b.PKey)) })
	return out
}

// Cause is why the adoption of a membership ended.
type Cause string

// Causes.
const (
	Stays    Cause = ""         // it did not end
	Proven   Cause = "proven"   // the host was admitted
	Deadline Cause = "deadline" // the host did not attest in time
	Ended    Cause = "ended"    // an operator ended it
	Taken    Cause = "taken"    // its host was released or fenced or left inventory, or a review did not find it in the fabric
)

// Standing is what is known now of the host of an adopted port.
type Standing struct {
	Now      time.Time
	Deadline time.Time
	Admitted bool // the host was admitted, and is a member of its cluster
	// Undecided is set while no person has decided about what a takeover found: there is no deadline.
	Undecided bool
}

// Ends returns why the adoption of a membership ends now, or Stays.
func (s Standing) Ends() Cause {
	switch {
	case s.Admitted:
		return Proven
	case !s.Undecided && !s.Now.Before(s.Deadline):
		return Deadline
	default:
		return Stays
	}
}

// Warns returns when an event is to say that an adoption will end: a quarter of its time before the deadline, and not more
// than two days.
func Warns(started, deadline time.Time) time.Time {
	return deadline.Add(-min(deadline.Sub(started)/4, warnBefore))
}
