// Package book is what subnet administration knows of the fabric when it answers: an
// immutable index of end ports by LID and GUID, with the P_Keys that they are really
// let use, made of a view of the Subnet Manager.
package book

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// Asker is who asks: what the packet proves, not what it says.
type Asker struct {
	Port    topo.PortID // end port that has the source LID; topo.None: nobody has
	As      ib.GUID     // its port GUID, or the one of its alias GUIDs that a GRH names
	LID     ib.LID      // source LID
	QP      uint32      // source queue pair
	Trusted bool        // it showed the SA_Key
}

// EndPort is a CA or router port, or port 0 of a switch. It is immutable.
type EndPort struct {
	Port    topo.PortID
	Node    topo.NodeID
	GUID    ib.GUID
	Aliases []ib.GUID // other GUIDs it may use
	LID     ib.LID    // base LID
	LMC     ib.LMC
	// PKeys are what it may use, ascending by base with the default partition last,
	// each base once: what its own table and that of the switch port in front of it
	// both hold. A table that was not read holds nothing.
	PKeys []ib.PKey
}

// Book is immutable.
type Book struct {
	View *sm.View

	ports  []*EndPort // by LID of the base and all others
	byLID  map[ib.LID]*EndPort
	byGUID map[ib.GUID]*EndPort
	byPort map[topo.PortID]*EndPort
}

// New makes the book of a view. prev, which may be nil, is the one before.
func New(_ *Book, v *sm.View) *Book {
	b := &Book{
		View: v, byLID: make(map[ib.LID]*EndPort), byGUID: make(map[ib.GUID]*EndPort),
		byPort: make(map[topo.PortID]*EndPort),
	}
	for _, id := range v.Fabric.EndPorts() {
		p := v.Fabric.Port(id)
		if p.LID == 0 {
			continue
		}
		e := &EndPort{
			Port: id, Node: p.Node, GUID: p.GUID, Aliases: v.Aliases(id),
			LID: p.LID, LMC: p.LMC, PKeys: allowed(v, id),
		}
		b.ports = append(b.ports, e)
		b.byPort[id] = e
		for i := range ib.LID(1) << p.LMC {
			b.byLID[p.LID+i] = e
		}
		b.byGUID[e.GUID] = e
		for _, g := range e.Aliases {
			b.byGUID[g] = e
		}
	}
	return b
}

// allowed gives the P_Keys that an end port may use.
func allowed(v *sm.View, id topo.PortID) []ib.PKey {
	keys, _ := v.PKeys(id)
	keys = slices.Clone(keys)
	if at := v.Fabric.SwitchPortOf(id); at != topo.None {
		held, _ := v.PKeys(at)
		keys = slices.DeleteFunc(keys, func(k ib.PKey) bool { return !slices.Contains(held, k) })
	}
	slices.SortFunc(keys, func(a, b ib.PKey) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b, a))
	})
	return slices.CompactFunc(keys, func(a, b ib.PKey) bool { return a.Base() == b.Base() })
}

// rank orders P_Keys so that tenants get their own partition before the default one.
func rank(k ib.PKey) int {
	if k.Base() == ib.DefaultPKeyLimited {
		return 1 << 16
	}
	return int(k.Base())
}

// ByLID gives the end port with a LID, one of its LMC included; nil: none has it.
func (b *Book) ByLID(lid ib.LID) *EndPort { return b.byLID[lid] }

// ByGUID gives the end port with a port or alias GUID; nil: none has it.
func (b *Book) ByGUID(g ib.GUID) *EndPort { return b.byGUID[g] }

// EndPort gives an end port by its id; nil: it is none, or has no LID.
func (b *Book) EndPort(id topo.PortID) *EndPort { return b.byPort[id] }

// EndPorts gives all end ports that have a LID, in the order of their GUIDs.
func (b *Book) EndPorts() []*EndPort { return b.ports }

// Common gives the first P_Key that two end ports can talk by, as the first has it:
// of one partition, and not both limited members.
func Common(x, y *EndPort) (ib.PKey, bool) {
	for _, k := range x.PKeys {
		for _, o := range y.PKeys {
			if k.Base() == o.Base() && (k.IsFull() || o.IsFull()) {
				return k, true
			}
		}
	}
	return 0, false
}
