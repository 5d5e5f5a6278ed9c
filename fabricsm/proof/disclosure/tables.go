package disclosure

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
)

// None is no port: of an asker, a LID that no port has; of a subject, no port in particular.
const None = -1

// Tables is what was read of devices, in the form by which answers are judged. It is immutable.
type Tables struct {
	prefix  ib.Prefix
	ports   []port         // as reader.Found.Ends
	byLID   map[ib.LID]int // of a port; several: its LID is not known
	byGUID  map[ib.GUID][]int
	byPlace map[ib.Place]int
	// Of infrastructure: switches by each of their LIDs, and all GUIDs of what is no port here.
	switches map[ib.LID]ib.GUID
	others   map[ib.GUID]bool
}

// several is the value of byLID for a LID that two ports have.
const several = -2

// port is an end port.
type port struct {
	reader.End
	owner proof.Owner
	node  ib.GUID
	lid   ib.LID // base; 0: not known
	keys  keys
}

// keys are the P_Keys that a port may use: those of its table whose partition the switch port in front of it has, too.
type keys struct {
	read bool      // its own table was, and what the switch port has; otherwise nothing is known
	most []ib.PKey // it has no others, or its switch port does
	sure []ib.PKey // it has these
}

// New makes Tables of what was read. prefix is the GID prefix of the subnet.
func New(f *reader.Found, prefix ib.Prefix) *Tables {
	t := &Tables{
		prefix: prefix, byLID: map[ib.LID]int{}, byGUID: map[ib.GUID][]int{}, byPlace: map[ib.Place]int{},
		switches: map[ib.LID]ib.GUID{}, others: map[ib.GUID]bool{},
	}
	bySwitch := map[ib.GUID]int{}
	for i := range f.Fabric.Devices {
		d := &f.Fabric.Devices[i]
		if d.Type != ib.NodeSwitch {
			continue
		}
		bySwitch[d.GUID] = i
		if d.Owner.Kind == proof.Infrastructure { // not what only says that it is a switch
			t.others[d.GUID] = true
		}
		if base, lmc, ok := f.LIDs(proof.Place{Device: i}); ok {
			for lid := base; lid < base+1<<lmc; lid++ {
				t.switches[lid] = d.GUID
			}
		}
	}
	for i := range f.Ends {
		t.add(f, &f.Ends[i], bySwitch)
	}
	return t
}

func (t *Tables) add(f *reader.Found, e *reader.End, bySwitch map[ib.GUID]int) {
	d := &f.Fabric.Devices[e.Port.Device]
	own := &d.Ports[e.Port.Port]
	i := len(t.ports)
	p := port{End: *e, owner: own.Owner, node: d.GUID}
	var front *proof.Port
	if at, ok := bySwitch[e.At.Switch]; ok && !e.At.IsZero() && int(e.At.Port) < len(f.Fabric.Devices[at].Ports) {
		front = &f.Fabric.Devices[at].Ports[e.At.Port]
	}
	p.keys = keysOf(own, front)
	if base, lmc, ok := f.LIDs(e.Port); ok {
		p.lid = base
		for lid := base; lid < base+1<<lmc; lid++ {
			if _, taken := t.byLID[lid]; taken {
				t.byLID[lid] = several
			} else {
				t.byLID[lid] = i
			}
		}
	}
	t.byPlace[e.At] = i
	guids := []ib.GUID{e.GUID, d.GUID}
	for _, a := range own.Aliases {
		guids = append(guids, a.GUID)
	}
	for _, g := range guids {
		if !slices.Contains(t.byGUID[g], i) {
			t.byGUID[g] = append(t.byGUID[g], i)
		}
	}
	t.ports = append(t.ports, p)
}

// keysOf returns the P_Keys that a port may use behind a switch port, nil: of which nothing is known to hold it back. That a port lacks a
// P_Key which its switch port has is the word of the adapter alone, so it accuses no other by it.
func keysOf(own, front *proof.Port) (k keys) {
	if own.PKeys.How != proof.WasRead || front == nil || front.Check.How != proof.WasRead || front.PKeys.How != proof.WasRead {
		return k
	}
	k.read = true
	for _, key := range own.PKeys.Value {
		if key.Valid() {
			k.sure = append(k.sure, key)
		}
	}
	if c := &front.Check.Value; c.Inbound || c.Outbound {
		k.sure = slices.DeleteFunc(k.sure, func(key ib.PKey) bool {
			return !slices.ContainsFunc(front.PKeys.Value, func(o ib.PKey) bool { return o.Base() == key.Base() })
		})
	}
	k.most = slices.Clone(k.sure)
	for _, key := range front.PKeys.Value {
		if key.Valid() && !slices.Contains(k.most, key) {
			k.most = append(k.most, key)
		}
	}
	return k
}

// relation says whether a port may know of another one.
type relation uint8

const (
	apart   relation = iota // it shares no P_Key with it
	unclear                 // that was not read
	near                    // it shares one, or both belong to the same party
)

// between returns the relation of a port that asks, or None, to another one.
func (t *Tables) between(asker, subject int) relation {
	s := &t.ports[subject]
	switch {
	case s.owner.Kind == proof.Infrastructure:
		return near
	case asker == None:
		return apart
	}
	a := &t.ports[asker]
	switch {
	case a.owner == s.owner || a.Port.Device == s.Port.Device || meet(a.keys.sure, s.keys.sure):
		return near
	case a.keys.read && s.keys.read && !meet(a.keys.most, s.keys.most):
		return apart
	}
	return unclear
}

// meet reports whether two ports can communicate by these P_Keys: one partition, and one of both a full member.
func meet(a, b []ib.PKey) bool {
	return slices.ContainsFunc(a, func(k ib.PKey) bool { return slices.ContainsFunc(b, k.Matches) })
}

// holds returns whether a port may know of a partition: its table has the P_Key, in any membership.
func (t *Tables) holds(asker int, key ib.PKey) relation {
	same := func(o ib.PKey) bool { return o.Base() == key.Base() }
	switch {
	case asker == None:
		return apart
	case slices.ContainsFunc(t.ports[asker].keys.sure, same):
		return near
	case t.ports[asker].keys.read && !slices.ContainsFunc(t.ports[asker].keys.most, same):
		return apart
	}
	return unclear
}

// isParty reports whether the owner of a port is a tenant, has no tenant, or is not declared.
func (t *Tables) isParty(i int) bool {
	kind := t.ports[i].owner.Kind
	return kind == proof.Tenant || kind == proof.Undeclared
}

// asks reports whether questions can be asked from a port: it is a party, and its LID is known, and that of no other port.
func (t *Tables) asks(i int) bool {
	p := &t.ports[i]
	return t.isParty(i) && p.lid != 0 && t.byLID[p.lid] == i
}

// Sample chooses ports to ask from, at most some: one of each party, and the rest out of all. draw returns a random number from 0 to n-1.
// Parties are tenants, hosts without one, and undeclared devices; parties is how many of them have a port, and covered of how many one
// was chosen: not of one whose ports all have no LID that is known, or one that an adapter claims, too.
func (t *Tables) Sample(most int, draw func(n int) int) (chosen []int, parties, covered int) {
	var order []int
	for i := range t.ports {
		if t.asks(i) {
			order = append(order, i)
		}
	}
	for i := len(order) - 1; i > 0; i-- {
		j := draw(i + 1)
		order[i], order[j] = order[j], order[i]
	}
	all, seen := map[proof.Owner]bool{}, map[proof.Owner]bool{}
	for i := range t.ports {
		if t.isParty(i) {
			all[t.ports[i].owner] = true
		}
	}
	var rest []int
	for _, i := range order {
		switch {
		case seen[t.ports[i].owner]:
			rest = append(rest, i)
		default:
			seen[t.ports[i].owner] = true
			chosen = append(chosen, i)
		}
	}
	chosen = chosen[:min(most, len(chosen))]
	covered = len(chosen)
	return append(chosen, rest[:min(most-len(chosen), len(rest))]...), len(all), covered
}

// Stranger returns a port of which another one, or None, must not know; None if there is none.
func (t *Tables) Stranger(asker int, draw func(n int) int) int {
	if len(t.ports) == 0 {
		return None
	}
	first := draw(len(t.ports))
	for n := range t.ports {
		i := (first + n) % len(t.ports)
		if t.ports[i].lid != 0 && t.between(asker, i) == apart {
			return i
		}
	}
	return None
}

// Unused returns a unicast LID that nothing has, 0 if there is none.
func (t *Tables) Unused(draw func(n int) int) ib.LID {
	const all = int(ib.MaxUnicastLID)
	first := draw(all)
	for n := range all {
		lid := ib.LID(1 + (first+n)%all)
		_, port := t.byLID[lid]
		if _, is := t.switches[lid]; !is && !port {
			return lid
		}
	}
	return 0
}

// Node returns the GUID of the node that a port belongs to.
func (t *Tables) Node(i int) ib.GUID { return t.ports[i].node }

// Owner returns the owner of a port.
func (t *Tables) Owner(i int) proof.Owner { return t.ports[i].owner }

// End returns a port as it was found, and its base LID, 0 if that is not known.
func (t *Tables) End(i int) (reader.End, ib.LID) { return t.ports[i].End, t.ports[i].lid }
