package group

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/portindex"
)

// Policy decides which ports may know of groups and be in them. Services use Strict. Drills inject others, to show what
// it prevents.
type Policy interface {
	// Knows reports whether a port may know of the groups of a partition.
	Knows(from *portindex.EndPort, k ib.PKey) bool
	// Partition returns why the P_Keys of a port keep it out of a group.
	Partition(g *Group, e *portindex.EndPort) Reason
	// Link returns why the link of a port keeps it out of a group.
	Link(g *Group, e *portindex.EndPort) Reason
	// Changes reports whether a requester may change a membership. own: it acts for itself, or is trusted. by is its
	// port GUID.
	Changes(m Member, own bool, by ib.GUID) bool
}

// Strict is the policy of services.
type Strict struct{}

// Knows implements Policy: a port knows of the groups of its partitions.
func (Strict) Knows(from *portindex.EndPort, k ib.PKey) bool {
	_, ok := from.Holds(k)
	return ok
}

// Partition implements Policy: a member has the P_Key of the group, and two limited members do not talk.
func (Strict) Partition(g *Group, e *portindex.EndPort) Reason {
	switch k, ok := e.Holds(g.PKey); {
	case !ok:
		return NotInPartition
	case !k.Matches(g.PKey):
		return BothLimited
	default:
		return NoReason
	}
}

// Link implements Policy: a member can receive what the group sends.
func (Strict) Link(g *Group, e *portindex.EndPort) Reason {
	switch {
	case e.LinkMTU < g.MTU:
		return SmallMTU
	case e.LinkRate.Compare(g.Rate) < 0:
		return TooSlow
	default:
		return NoReason
	}
}

// Changes implements Policy: a port may change its own memberships. A membership that was made for it may also be changed
// by its creator.
func (Strict) Changes(m Member, own bool, by ib.GUID) bool { return own || m.Proxy && m.By == by }
