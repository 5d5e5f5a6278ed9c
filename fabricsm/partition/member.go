package partition

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Member is the wish that an end port be in a partition. It is honoured only
// while the fabric sees that GUID at that place.
type Member struct {
	GUID  ib.GUID // of the end port
	PKey  ib.PKey // with the membership bit; tenants are full members
	Place ib.Place
}

// Reason is why a member is not honoured.
type Reason uint8

// Reasons to reject a member.
const (
	// NotSeen: no end port of the fabric has the GUID.
	NotSeen Reason = iota + 1
	// WrongPlace: the GUID is seen, but not at the member's place.
	WrongPlace
	// InvalidPKey: the key's base is 0, or it is the default partition, which
	// is not granted.
	InvalidPKey
	// Conflict: another member wants the same port in the same partition with
	// the other membership. Neither is honoured.
	Conflict
	// NoEnforcement: the switch cannot check P_Keys on that port.
	NoEnforcement
	// TableFull: the device cannot hold one more key.
	TableFull
)

func (r Reason) String() string {
	switch r {
	case NotSeen:
		return "not seen"
	case WrongPlace:
		return "wrong place"
	case InvalidPKey:
		return "invalid P_Key"
	case Conflict:
		return "full and limited membership wanted"
	case NoEnforcement:
		return "switch cannot enforce"
	case TableFull:
		return "P_Key table full"
	default:
		return fmt.Sprintf("Reason(%d)", uint8(r))
	}
}

// Refusal is a member that is not honoured.
type Refusal struct {
	Member Member
	Reason Reason
	Device ib.GUID  // NoEnforcement, TableFull: the node that is the limit
	Limit  int      // TableFull: the P_Keys that it can hold
	Seen   ib.Place // WrongPlace: where the GUID is; zero for a switch's own port
}

// Error returns the wanted membership, why it is rejected, and a remedy.
func (r *Refusal) Error() string {
	m := r.Member
	what := fmt.Sprintf("P_Key %v for port %v at %v: ", m.PKey, m.GUID, m.Place)
	switch r.Reason {
	case NotSeen:
		return what + "the fabric does not see this GUID; check that the host is on and cabled"
	case WrongPlace:
		return what + fmt.Sprintf("the GUID is seen at %v; correct the cable or the inventory", r.Seen)
	case InvalidPKey:
		return what + "this P_Key is not granted; use 0x8001 to 0xfffe"
	case Conflict:
		return what + "another grant wants the other membership of this partition; withdraw one"
	case NoEnforcement:
		return what + fmt.Sprintf("switch %v cannot enforce P_Keys; move the cable to one that can", r.Device)
	case TableFull:
		return what + fmt.Sprintf("node %v can hold %d P_Keys, the default one included, and all are in use; remove the host from a partition", r.Device, r.Limit)
	default:
		return what + r.Reason.String()
	}
}

// Roster is a set of members that can be asked by GUID. It is immutable.
type Roster struct{ members []Member }

// NewRoster sorts members; equal ones count once. The argument is not kept.
func NewRoster(members []Member) Roster {
	m := slices.Clone(members)
	slices.SortFunc(m, compareMembers)
	return Roster{members: slices.Compact(m)}
}

// Of returns the members that name a GUID.
func (r Roster) Of(g ib.GUID) []Member {
	lo, _ := slices.BinarySearchFunc(r.members, g, func(m Member, g ib.GUID) int { return cmp.Compare(m.GUID, g) })
	hi := lo
	for hi < len(r.members) && r.members[hi].GUID == g {
		hi++
	}
	return r.members[lo:hi]
}

// All returns all members in the order of (GUID, partition, membership, place).
func (r Roster) All() []Member { return r.members }

func compareMembers(a, b Member) int {
	return cmp.Or(cmp.Compare(a.GUID, b.GUID), cmp.Compare(a.PKey.Base(), b.PKey.Base()), cmp.Compare(a.PKey, b.PKey),
		cmp.Compare(a.Place.Switch, b.Place.Switch), cmp.Compare(a.Place.Port, b.Place.Port))
}

// Locate returns the end port where a member is accepted: the one with its GUID at its place. Otherwise it returns why
// there is none. Other ports that claim the same GUID have no effect on the right one: they cannot take its place, or block
// it.
func Locate(f *topo.Fabric, m Member) (topo.PortID, *Refusal) {
	ports := f.PortsByGUID(m.GUID)
	if len(ports) == 0 || !m.GUID.Valid() {
		return topo.None, &Refusal{Member: m, Reason: NotSeen}
	}
	if at := f.PortAt(m.Place); at != topo.None && slices.Contains(ports, at) {
		return at, nil
	}
	return topo.None, &Refusal{Member: m, Reason: WrongPlace, Seen: f.PlaceOf(ports[0])}
}
