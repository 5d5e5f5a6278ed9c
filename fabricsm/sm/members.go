package sm

import (
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// members is what the intent says, and how far it is true.
type members struct {
	ready    bool // an intent has come, or is not waited for any longer
	intent   bool
	revision int64
	keep     bool // what switch ports have and the intent does not name stays

	byGUID   map[ib.GUID][]*membership // grants and removals by port GUID, sorted
	byPlace  map[ib.Place][]ib.GUID    // GUIDs that name the place, sorted
	hosts    map[ib.Place]bool         // where nothing but a host is believed
	hostList []ib.Place                // the same, as it came
	total    int                       // memberships
	round    uint32                    // counts intents that replace all
	changed  []*membership             // by the intent that is being taken
	wishes   []partition.Member        // room for those of one port
	plan     *topo.Fabric              // snapshot that is planned on, nil when it is out of date
	self     [1]topo.PortID

	onlyDefault partition.Table    // what most ports are to hold
	unknown     map[int]*pkeyTable // by number of blocks: of which nothing is known
	shared      [sharedTables]*pkeyTable
	sharedAt    int
	sent        map[topo.PortID][keysPerBlock]ib.PKey // by the last Set to a port
}

// membership is a grant, or the removal of one.
type membership struct {
	Grant
	leaving bool   // to be proven absent
	applied bool   // MembershipApplied was reported
	held    bool   // granted only once the switch port was read with it
	kept    bool   // the intent does not name it; the switch port had it
	round   uint32 // the last intent that names it, of those that replace all
}

// refused names the problem of a membership that is not honoured.
func (ms *membership) refused() fault.Key {
	return fault.Key{Kind: fault.MembershipRefused, GUID: ms.GUID, PKey: ms.PKey.Base(), Place: ms.Place}
}

func newMembers() members {
	return members{
		byGUID: make(map[ib.GUID][]*membership), byPlace: make(map[ib.Place][]ib.GUID),
		onlyDefault: partition.Table{ib.DefaultPKeyLimited}, unknown: make(map[int]*pkeyTable),
		sent: make(map[topo.PortID][keysPerBlock]ib.PKey),
	}
}

// at reports whether anything is wanted, or to be proven, of a place.
func (m *members) at(pl ib.Place) bool { return len(m.byPlace) > 0 && len(m.byPlace[pl]) > 0 }

// forHost reports whether only a host belongs at a place.
func (m *members) forHost(pl ib.Place) bool { return m.hosts[pl] || m.at(pl) }

// expel takes away a switch that was linked to a place before it was known to be
// for a host.
func (c *Core) expel(pl ib.Place) {
	sp := c.topo.SwitchPortAt(pl)
	if sp == topo.None {
		return
	}
	if peer := c.topo.Peer(sp); peer != topo.None && c.topo.IsExternal(peer) {
		far := c.ports[peer].node
		c.unlink(sp)
		c.shut(sp)
		c.q.MarkPort(work.Probe, sp)
		if c.nodes[far].alive && c.nodes[far].epoch != 0 && far != c.root {
			// It is a real switch whose name was taken: the values read before may be a lie.
			c.rebooted(far)
			c.nodes[far].infoKnown = false
			c.refresh(far)
		}
	}
}

// concerns reports whether the table of a port has to be proven: something is
// wanted of, or to be proven at, its place or its GUID.
func (c *Core) concerns(p topo.PortID) bool {
	m := &c.members
	if len(m.byGUID) == 0 {
		return false
	}
	return m.at(c.topo.PlaceOf(p)) || !c.topo.IsExternal(p) && len(m.byGUID[c.topo.GUIDOf(p)]) > 0
}

// granted reports whether a key is granted to a port at a place, full or limited as k is; with anyhow, in either form.
func (m *members) granted(pl ib.Place, k ib.PKey, anyhow bool) bool {
	for _, g := range m.byPlace[pl] {
		for _, ms := range m.byGUID[g] {
			if !ms.leaving && ms.Place == pl && (ms.PKey == k || anyhow && ms.PKey.Base() == k.Base()) {
				return true
			}
		}
	}
	return false
}

// stopWaiting begins to program P_Keys.
func (c *Core) stopWaiting() {
	if !c.members.ready {
		c.members.ready = true
		if c.writing() {
			c.assignLeft()
			c.touchAll()
		}
	}
}

// judgePort judges the memberships that a port has to do with.
func (c *Core) judgePort(p topo.PortID) {
	if len(c.members.byGUID) == 0 {
		return
	}
	if !c.topo.IsExternal(p) {
		c.judge(c.topo.GUIDOf(p))
		return
	}
	for _, g := range slices.Clone(c.members.byPlace[c.topo.PlaceOf(p)]) {
		c.judge(g)
	}
	if peer := c.topo.Peer(p); peer != topo.None && c.topo.IsEndPort(peer) {
		c.judge(c.topo.GUIDOf(peer))
	}
}

// judgeNode judges the memberships of the ports of a node.
func (c *Core) judgeNode(id topo.NodeID) {
	if len(c.members.byGUID) == 0 {
		return
	}
	tn := c.topo.Node(id)
	for i := range int(tn.NumPorts) + 1 {
		c.judgePort(tn.FirstPort + topo.PortID(i))
	}
}

// absent records that a GUID is no longer seen.
func (c *Core) absent(guid ib.GUID) {
	for _, ms := range c.members.byGUID[guid] {
		ms.applied = false
		c.faults.Clear(ms.refused())
	}
	c.judgeLeaving(guid)
}

// judge reports which memberships of a GUID have become true, and which cannot.
func (c *Core) judge(guid ib.GUID) {
	list := c.members.byGUID[guid]
	if len(list) == 0 || !c.writing() {
		return
	}
	c.judgeLeaving(guid)
	h, ok := c.byPort[guid]
	if !ok || !c.ports[h].placed || !c.members.ready {
		return
	}
	var plan partition.PortPlan
	planned := false
	for _, ms := range c.members.byGUID[guid] {
		if ms.leaving || ms.applied {
			continue
		}
		if ms.held {
			c.tellHeld(ms)
			continue
		}
		if c.isApplied(h, ms) {
			ms.applied = true
			c.faults.Clear(ms.refused())
			c.event(&MembershipApplied{GUID: guid, PKey: ms.PKey, Place: ms.Place, Revision: c.members.revision})
			continue
		}
		if !planned {
			plan, planned = c.planFor(h), true
		}
		c.refuseMember(h, ms, &plan)
	}
}

func (c *Core) isApplied(h topo.PortID, ms *membership) bool {
	sp := c.topo.Peer(h)
	if sp == topo.None || !isTenant(ms.PKey) || c.topo.PlaceOf(h) != ms.Place || !c.switchHolds(sp, ms.PKey) {
		return false
	}
	return c.ports[h].pkeys.proves(ms.PKey) && !c.nodes[c.ports[sp].node].unsure && c.confirmed(sp)
}

// refuseMember says why a grant will not be applied as things stand.
func (c *Core) refuseMember(h topo.PortID, ms *membership, plan *partition.PortPlan) {
	reason := ""
	if sp := c.topo.Peer(h); sp != topo.None && c.topo.IsExternal(sp) && !c.nodes[c.ports[sp].node].infoKnown {
		return // what the switch can do is not known yet
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
	sp := c.topo.Peer(h)
	if reason == "" && sp != topo.None && c.topo.PlaceOf(h) == ms.Place && c.forgetsEnforcement(sp) {
		reason = fmt.Sprintf("switch %v does not keep the partition enforcement bits of PortInfo; use a switch that does", ms.Place.Switch)
	}
	if reason == "" && sp != topo.None && !c.law.MayBelong(sp) {
		reason = fmt.Sprintf("what is at %v is not what the declared topology has there", ms.Place)
	}
	if reason == "" {
		return
	}
	c.problem(ms.refused(),
		&MembershipRefused{GUID: ms.GUID, PKey: ms.PKey, Place: ms.Place, Revision: c.members.revision, Reason: reason})
}

// judgeLeaving reports which removals are proven.
func (c *Core) judgeLeaving(guid ib.GUID) {
	if !c.writing() {
		return
	}
	for _, ms := range slices.Clone(c.members.byGUID[guid]) {
		if !ms.leaving {
			continue
		}
		sp := c.topo.SwitchPortAt(ms.Place)
		if !c.goneWithSwitch(ms) && (sp == topo.None || !c.goneFrom(sp, ms)) {
			continue
		}
		proven, wait := c.goneFromHCA(ms)
		if c.goneWithHCA(ms) {
			proven, wait = true, false
		}
		if wait || !proven && sp != topo.None && c.tableless(sp) {
			continue // nothing but the HCA keeps it out of the partition there
		}
		c.members.remove(ms)
		c.event(&MembershipRemoved{GUID: guid, PKey: ms.PKey, Place: ms.Place, Revision: c.members.revision, HCAProven: proven})
	}
}

// goneFrom reports whether a switch port no longer grants a membership: it was read back without the key, or holds it for
// another grant.
func (c *Core) goneFrom(sp topo.PortID, ms *membership) bool {
	if c.tableless(sp) {
		return true
	}
	t := c.ports[sp].pkeys
	return t != nil && (t.absent(ms.PKey) || t.proven() && c.members.granted(ms.Place, ms.PKey, true))
}

// tableless reports whether a switch port is known to have no P_Key table.
func (c *Core) tableless(sp topo.PortID) bool {
	n := &c.nodes[c.ports[sp].node]
	return n.infoKnown && n.info.PartitionEnforcementCap == 0
}

// goneFromHCA reports whether the HCA is proven not to hold a key; wait says
// that it can be asked and has not answered yet.
func (c *Core) goneFromHCA(ms *membership) (proven, wait bool) {
	h, ok := c.byPort[ms.GUID]
	if !ok || c.nodes[c.ports[h].node].silent || c.topo.Peer(h) == topo.None {
		return false, false
	}
	t := c.ports[h].pkeys
	if t != nil && t.absent(ms.PKey) {
		return true, false
	}
	for _, o := range c.members.byGUID[ms.GUID] {
		if !o.leaving && o.PKey.Base() == ms.PKey.Base() {
			return true, false // it holds the key for another place now
		}
	}
	return false, true
}
