package members

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
)

// Intent is everything that is wanted beyond the defaults.
type Intent struct {
	Revision int64   // the store's, goes into events and views
	Grants   []Grant // in any order
	// Absent lists memberships whose absence is to be proven although this
	// core may never have granted them, for example after a restart. Each is
	// answered by MembershipRemoved once. Those that Grants holds too are
	// ignored.
	Absent []Grant
	// Held lists memberships that are granted only where the switch port was read with the P_Key, full or limited
	// as it is there. Those that Grants or Absent hold too are ignored. It goes with Keep.
	Held []Grant
	// Keep has a switch port whose link is Armed or Active keep the P_Keys that no other list has for its place, for
	// the port behind it, and a switch port without a port behind it keep all. The zero value takes them off.
	Keep bool
	// Takeover says what becomes of P_Keys that another subnet manager left. The zero value takes them off.
	Takeover Takeover
	// Hosts lists the places where inventory has a host. A device that reports itself as a switch there is left out: a
	// switch is believed to check no P_Keys for us.
	Hosts []ib.Place
}

// Grant puts an end port into a partition. It is honoured only while the GUID is seen at exactly that place. Where two
// grants differ in the membership bit alone, the later change counts, within one intent the limited one. For memberships
// that are withdrawn or absent the bit means nothing.
type Grant = partition.Member

// Take replaces all that is wanted. It returns the places where only a host belongs that were not among them before. The
// memberships that differ are those of Intended.
func (r *Register) Take(in *Intent) (hosts []ib.Place) {
	r.TakeOver(in.Takeover)
	x := r.Replace(in.Keep)
	for _, g := range in.Grants {
		x.Grant(g)
	}
	for _, g := range in.Held {
		x.Hold(g)
	}
	for _, g := range in.Absent {
		x.Deny(g)
	}
	x.End()
	return r.SetHosts(in.Hosts)
}

// Change withdraws grants, then adds others, at a cost that does not grow with what is wanted.
func (r *Register) Change(grant, withdraw []Grant) {
	for _, g := range withdraw {
		r.Withdraw(g)
	}
	for _, g := range grant {
		r.Grant(g)
	}
}
