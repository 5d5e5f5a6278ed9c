package partition

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// Enforcement is the capability that a switch must declare before a member behind it is accepted.
type Enforcement uint8

const (
	// EnforceDeclared (the zero value) asks for room for P_Keys on external
	// ports and for the capability to check both directions.
	EnforceDeclared Enforcement = iota
	// EnforceCapacity needs room only, for devices that do not report what they can check. ibsim is one.
	EnforceCapacity
)

// Rules are the settings of planning.
type Rules struct {
	// SM are the end ports of subnet managers: full members of the default partition. They are ids and not GUIDs, which any
	// host can claim.
	SM          []topo.PortID
	Enforcement Enforcement
	// FullSwitches makes switches full members of the default partition, too, so that
	// they reach each other. Hosts then reach them as well.
	FullSwitches bool
	// Controls are Strict where nil.
	Controls Controls
}

// Current are the tables of a port as they were last read; nil was never read
// and counts as empty.
type Current struct {
	EndPort Table
	Switch  Table // of the switch port in front of it
}

// PortPlan is what an end port, and the switch port in front of it, should
// hold.
type PortPlan struct {
	Port    topo.PortID
	EndPort Table
	// SwitchPort is the switch port to enforce at. It is None for switch port
	// 0, for a port cabled to no switch, and where the switch has no room for
	// P_Keys; then there are no keys but the default one.
	SwitchPort topo.PortID
	Switch     Table // wanted at SwitchPort, enforced in both directions

	Members []Member   // honoured
	Refused []*Refusal // of the members that name this GUID
	// Misplaced says that this port shows a GUID that members name at another
	// place.
	Misplaced bool
}

// PlanPort plans one end port. members must be all that name its GUID, in the
// order of a [Roster]; the cost grows with them and with the tables only.
func PlanPort(f *topo.Fabric, r Rules, id topo.PortID, members []Member, now Current) PortPlan {
	plan := PortPlan{Port: id, SwitchPort: topo.None}
	controls := r.controls()
	def := controls.Default(slices.Contains(r.SM, id) || r.FullSwitches && f.NodeOf(id).Type == ib.NodeSwitch)
	wanted := plan.sift(f, members)
	lim := limits(f, r, id)
	keys := plan.admit(wanted, lim, now)
	now = controls.Keep(now)
	plan.EndPort = arrange(now.EndPort, lim.endPort, def, keys)
	if lim.enforce > 0 {
		plan.SwitchPort = f.SwitchPortOf(id)
		plan.Switch = arrange(now.Switch, lim.enforce, def, keys)
	}
	return plan
}

// sift returns the members that are at their place and valid, one for each partition, and rejects the others.
func (p *PortPlan) sift(f *topo.Fabric, members []Member) []Member {
	var here []Member
	for _, m := range members {
		at, refusal := Locate(f, m)
		switch {
		case m.GUID != f.Port(p.Port).GUID:
			// Not ours: the caller passed too many.
		case at == p.Port && (!m.PKey.Valid() || m.PKey.Base() == ib.DefaultPKeyLimited):
			p.refuse(m, InvalidPKey)
		case at == p.Port:
			here = append(here, m)
		default:
			p.Misplaced = true
			// If several ports have the GUID, the first reports.
			if refusal != nil && f.PortByGUID(m.GUID) == p.Port {
				p.Refused = append(p.Refused, refusal)
			}
		}
	}
	return slices.DeleteFunc(here, func(m Member) bool {
		conflict := slices.ContainsFunc(members, func(o Member) bool {
			return o.Place == m.Place && o.GUID == m.GUID && o.PKey.Base() == m.PKey.Base() && o.PKey != m.PKey
		})
		if conflict {
			p.refuse(m, Conflict)
		}
		return conflict
	})
}

func (p *PortPlan) refuse(m Member, why Reason) {
	p.Refused = append(p.Refused, &Refusal{Member: m, Reason: why})
}

// limit is how many P_Keys the devices of a port can hold, the default key
// included.
type limit struct {
	endPort int
	enforce int // 0: nothing can be written to the switch port
	allowed bool
	node    ib.GUID
	sw      ib.GUID // 0: not cabled to a switch
}

func limits(f *topo.Fabric, r Rules, id topo.PortID) limit {
	n := f.NodeOf(id)
	lim := limit{endPort: max(1, r.controls().Capacity(int(n.PartitionCap))), node: n.GUID}
	sw := f.SwitchPortOf(id)
	if sw == topo.None {
		return lim
	}
	s := f.NodeOf(sw)
	lim.sw, lim.enforce = s.GUID, r.controls().Capacity(int(s.PartitionEnforcementCap))
	lim.allowed = s.PartitionEnforcementCap > 0 && (r.Enforcement == EnforceCapacity || s.InboundEnforcementCap && s.OutboundEnforcementCap)
	return lim
}

// admit returns the keys that fit, sorted by partition. Keys that the tables already hold come first: a new member never
// removes an old one.
func (p *PortPlan) admit(wanted []Member, lim limit, now Current) []ib.PKey {
	if !lim.allowed {
		for _, m := range wanted {
			p.Refused = append(p.Refused, &Refusal{Member: m, Reason: NoEnforcement, Device: lim.sw})
		}
		return nil
	}
	most, device := lim.endPort, lim.node
	if lim.enforce < most {
		most, device = lim.enforce, lim.sw
	}
	absent := func(m Member) (tables int) {
		for _, t := range []Table{now.EndPort, now.Switch} {
			if indexOfBase(t, m.PKey) < 0 {
				tables++
			}
		}
		return tables
	}
	slices.SortStableFunc(wanted, func(a, b Member) int { return cmp.Compare(absent(a), absent(b)) })
	for len(wanted) > most-1 {
		last := wanted[len(wanted)-1]
		wanted = wanted[:len(wanted)-1]
		p.Refused = append(p.Refused, &Refusal{Member: last, Reason: TableFull, Device: device, Limit: most})
	}
	slices.SortFunc(wanted, compareMembers)
	p.Members = wanted
	keys := make([]ib.PKey, len(wanted))
	for i, m := range wanted {
		keys[i] = m.PKey
	}
	return keys
}

// Wanted is the plan for a whole fabric.
type Wanted struct {
	Ports   []PortPlan // every end port that is cabled or has a GUID, by id
	Refused []*Refusal // of all ports, and the members that are not seen
}

// Plan plans every end port. current returns the table last read of an end port or of a switch port.
func Plan(f *topo.Fabric, r Rules, roster Roster, current func(topo.PortID) Table) Wanted {
	w := Wanted{Ports: make([]PortPlan, 0, len(f.EndPorts()))}
	for i, p := range f.Ports() {
		id := i
		if !f.IsEndPort(id) || p.GUID == 0 && p.Peer == topo.None {
			continue
		}
		now := Current{EndPort: current(id)}
		if sw := f.SwitchPortOf(id); sw != topo.None {
			now.Switch = current(sw)
		}
		plan := PlanPort(f, r, id, roster.Of(p.GUID), now)
		w.Ports = append(w.Ports, plan)
		w.Refused = append(w.Refused, plan.Refused...)
	}
	for _, m := range roster.All() {
		if _, refusal := Locate(f, m); refusal != nil && refusal.Reason == NotSeen {
			w.Refused = append(w.Refused, refusal)
		}
	}
	return w
}
