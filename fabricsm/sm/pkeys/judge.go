package pkeys

import (
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Judge finds out which memberships are in force, which are proven to be gone, and which cannot be honoured. It is part of a
// Keeper.
type Judge struct {
	*planner
	events Events
	queue  *work.Queue
	awaits bool // devices may still obey an instance that led before
}

// AwaitKeys has no absence counted until KeysDropped: an instance that led before may be stopped between its look at the
// lease and a packet that puts a P_Key back, and devices accept that as long as they obey its keys.
func (j *Judge) AwaitKeys() { j.awaits = true }

// KeysDropped takes that no device obeys an instance that led before any more. Tables from which a removal is to be proven
// are read again: what was read so far may have been written since.
func (j *Judge) KeysDropped() {
	if !j.awaits {
		return
	}
	j.awaits = false
	for _, guid := range j.members.GUIDs() {
		for _, ms := range j.members.Of(guid) {
			if ms.Leaving {
				j.readAgain(j.topo.SwitchPortAt(ms.Place))
				if h, ok := j.fabric.PortByGUID(guid); ok {
					j.readAgain(h)
				}
			}
		}
		j.leaving(guid)
	}
}

// readAgain has the table of a port read.
func (j *Judge) readAgain(p topo.PortID) {
	if p == topo.None {
		return
	}
	if t := j.known.table(p); t != nil {
		j.known.set(p, t.doubted())
	}
	j.queue.MarkPort(work.PKey, p)
}

// Port judges the memberships that a port has to do with.
func (j *Judge) Port(p topo.PortID) {
	if j.members.IsEmpty() {
		return
	}
	if !j.topo.IsExternal(p) {
		j.GUID(j.topo.GUIDOf(p))
		return
	}
	for _, g := range slices.Clone(j.members.GUIDsAt(j.topo.PlaceOf(p))) {
		j.GUID(g)
	}
	if peer := j.topo.Peer(p); peer != topo.None && j.topo.IsEndPort(peer) {
		j.GUID(j.topo.GUIDOf(peer))
	}
}

// Node judges the memberships of the ports of a node.
func (j *Judge) Node(id topo.NodeID) {
	if j.members.IsEmpty() {
		return
	}
	tn := j.topo.Node(id)
	for i := range int(tn.NumPorts) + 1 {
		j.Port(tn.FirstPort + topo.PortID(i))
	}
}

// Gone takes that a GUID is no longer seen.
func (j *Judge) Gone(guid ib.GUID) {
	for _, ms := range j.members.Of(guid) {
		ms.Applied = false
		j.events.Solved(ms.Refused())
	}
	j.leaving(guid)
}

// Retired finds the removals that are proven by the devices that left permanently.
func (j *Judge) Retired() {
	for _, guid := range j.members.GUIDs() {
		j.leaving(guid)
	}
}

// GUID reports which memberships of a GUID have become true, and which cannot.
func (j *Judge) GUID(guid ib.GUID) {
	if !j.members.Has(guid) || !j.fabric.IsWriting() {
		return
	}
	j.leaving(guid)
	h, ok := j.fabric.PortByGUID(guid)
	if !ok || !j.fabric.PortOf(h).Placed || !j.members.IsReady() {
		return
	}
	var plan partition.PortPlan
	planned := false
	for _, ms := range j.members.Of(guid) {
		if ms.Leaving || ms.Applied {
			continue
		}
		if ms.Held {
			j.tellHeld(ms)
			continue
		}
		if j.isApplied(h, ms) {
			ms.Applied = true
			j.events.Solved(ms.Refused())
			j.events.Applied(ms)
			continue
		}
		if !planned {
			plan, planned = j.planFor(h), true
		}
		if reason := j.whyRefused(h, ms, &plan); reason != "" {
			j.events.Refused(ms, reason)
		}
	}
}

func (j *Judge) isApplied(h topo.PortID, ms *members.Membership) bool {
	sp := j.topo.Peer(h)
	if sp == topo.None || !members.IsTenant(ms.PKey) || j.topo.PlaceOf(h) != ms.Place || !j.switchHolds(sp, ms.PKey) {
		return false
	}
	return j.known.table(h).proves(ms.PKey) && !j.nodeOf(sp).Unsure && j.fabric.IsConfirmed(sp)
}

// whyRefused says why a grant will not be applied as things stand.
func (j *Judge) whyRefused(h topo.PortID, ms *members.Membership, plan *partition.PortPlan) (reason string) {
	sp := j.topo.Peer(h)
	if sp != topo.None && j.topo.IsExternal(sp) && !j.nodeOf(sp).Known {
		return "" // what the switch can do is not known yet
	}
	for _, r := range plan.Refused {
		if r.Member.PKey == ms.PKey && r.Member.Place == ms.Place {
			switch r.Reason {
			default:
				reason = r.Reason.String()
			case partition.WrongPlace:
				reason = fmt.Sprintf("wrong place: the GUID is seen at %v; correct the cable or the inventory", r.Seen)
			case partition.TableFull:
				reason = fmt.Sprintf("P_Key table full: node %v holds %d; remove the host from a partition", r.Device, r.Limit)
			case partition.NoEnforcement:
				reason = fmt.Sprintf("switch %v cannot enforce P_Keys; move the cable to one that can", r.Device)
			}
		}
	}
	switch {
	case reason != "" || sp == topo.None:
	case j.topo.PlaceOf(h) == ms.Place && j.fabric.EnforcementOf(sp).Forgotten:
		reason = fmt.Sprintf("switch %v does not keep the partition enforcement bits of PortInfo; use a switch that does", ms.Place.Switch)
	case !j.fabric.MayBelong(sp):
		reason = fmt.Sprintf("what is at %v is not what the declared topology has there", ms.Place)
	}
	return reason
}

// tellHeld reports that a membership is held, once it is known that the switch port does not have the P_Key.
func (j *Judge) tellHeld(ms *members.Membership) {
	if sp := j.topo.SwitchPortAt(ms.Place); sp != topo.None && j.known.table(sp).IsKnown() {
		j.events.Refused(ms, "the state was restored, and the switch port does not have this P_Key: review the restore")
	}
}

// leaving reports which removals are proven.
func (j *Judge) leaving(guid ib.GUID) {
	if !j.fabric.IsWriting() {
		return
	}
	for _, ms := range slices.Clone(j.members.Of(guid)) {
		if !ms.Leaving {
			continue
		}
		sp := j.topo.SwitchPortAt(ms.Place)
		if !j.wentWithSwitch(ms) && (sp == topo.None || j.awaits || !j.isGoneFrom(sp, ms)) {
			continue
		}
		hca, wait := j.isGoneFromHCA(ms)
		if j.wentWithHCA(ms) {
			hca, wait = true, false
		}
		if wait || !hca && sp != topo.None && j.isTableless(sp) {
			continue // nothing but the HCA keeps it out of the partition there
		}
		j.members.Remove(ms)
		j.events.Removed(ms, hca)
	}
}

// wentWithSwitch reports whether a membership is at a switch that was retired and is not part of the fabric. No read can
// show that its port is without the P_Key, and no packet reaches the fabric through it.
func (j *Judge) wentWithSwitch(ms *members.Membership) bool {
	return j.topo.NodeByGUID(ms.Place.Switch) == topo.None && j.fabric.IsRetired(ms.Place.Switch)
}

// wentWithHCA reports whether a membership is of an adapter that was retired and is not part of the fabric.
func (j *Judge) wentWithHCA(ms *members.Membership) bool {
	_, seen := j.fabric.PortByGUID(ms.GUID)
	return !seen && j.fabric.IsRetired(ms.GUID)
}

// isGoneFrom reports whether a switch port no longer grants a membership: it was read back without the key, or holds it for
// another grant.
func (j *Judge) isGoneFrom(sp topo.PortID, ms *members.Membership) bool {
	if j.isTableless(sp) {
		return true
	}
	t := j.known.table(sp)
	return t != nil && (t.lacks(ms.PKey) || t.IsProven() && j.members.IsGranted(ms.Place, ms.PKey, true))
}

// isTableless reports whether a switch port is known to have no P_Key table.
func (j *Judge) isTableless(sp topo.PortID) bool {
	n := j.nodeOf(sp)
	return n.Known && n.Cap == 0
}

// isGoneFromHCA reports whether the HCA is proven not to hold a key; wait says that it can be asked and has not answered
// yet.
func (j *Judge) isGoneFromHCA(ms *members.Membership) (proven, wait bool) {
	h, ok := j.fabric.PortByGUID(ms.GUID)
	if !ok || j.nodeOf(h).Silent || j.topo.Peer(h) == topo.None {
		return false, false
	}
	if t := j.known.table(h); t != nil && t.lacks(ms.PKey) {
		return true, false
	}
	for _, o := range j.members.Of(ms.GUID) {
		if !o.Leaving && o.PKey.Base() == ms.PKey.Base() {
			return true, false // it holds the key for another place now
		}
	}
	return false, true
}
