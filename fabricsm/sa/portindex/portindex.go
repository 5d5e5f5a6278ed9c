// Package portindex is the data about the fabric from which subnet administration answers: an immutable index of end ports by
// LID and GUID, with the P_Keys that they can really use. It is made from a view of the Subnet Manager.
package portindex

import (
	"iter"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// Asker is the requester, as far as the packet proves it.
type Asker struct {
	Port    topo.PortID // end port that has the source LID; topo.None: no port has it
	As      ib.GUID     // its port GUID, or the one of its alias GUIDs that a GRH names
	LID     ib.LID      // source LID
	QP      uint32      // source queue pair
	Trusted bool        // it showed the SA_Key
	Epoch   uint64      // of that key, see keys.Epoch; 0: it showed none
}

// EndPort is a CA or router port, or port 0 of a switch. It is immutable.
type EndPort struct {
	Port    topo.PortID
	Node    topo.NodeID
	Type    ib.NodeType // of its node
	GUID    ib.GUID
	Aliases []ib.GUID // other GUIDs it may use, 0 for unused entries
	LID     ib.LID    // base LID
	LMC     ib.LMC
	// PKeys are the P_Keys that it may use, each base once, ascending by base with the default partition last. Both its own
	// table and that of the switch port in front of it have them. A table that was not read holds nothing; behind a switch
	// that cannot check P_Keys only the default partition counts. The Subnet Manager's own port and ports 0 of switches
	// have only their own table.
	PKeys []ib.PKey

	// Home is the switch it is cabled to by a link that is up, of port 0 the switch
	// itself; topo.None without one. HomePort leads from there to it, 0 to port 0.
	Home     topo.NodeID
	HomePort ib.PortNum
	// MTU and Rate are those of the port, LinkMTU and LinkRate those of its link. For port 0, and without a link, both are
	// the same. A value that the port does not report counts as the lowest possible one.
	MTU, LinkMTU   ib.MTU
	Rate, LinkRate ib.Rate

	Groups qos.Groups // of [Rules.Policy]; nil without one

	keys *keySet // PKeys again; nil in one that was not made by New
}

// Book is immutable.
type Book struct {
	View   *sm.View
	Routes Routes

	lids  topo.Pages[*EndPort] // by LID, those of an LMC too
	ports topo.Pages[*EndPort] // by PortID
	guids guids
	maker *maker

	turn   int        // the how manieth of its maker
	after  identity   // of the one before
	shaken []*EndPort // those that differ from it, as they were and as they are

	routers []*EndPort
}

// Routers returns the end ports of routers, ordered by LID. The caller must not write to it.
func (b *Book) Routers() []*EndPort { return b.routers }

// ByLID returns the end port with a LID, one of its LMC included, or nil if no port has it.
func (b *Book) ByLID(lid ib.LID) *EndPort {
	if int(lid) >= b.lids.Len() {
		return nil
	}
	return b.lids.At(int32(lid))
}

// ByGUID returns the end port with a port or alias GUID, or nil if no port has it. If several ports claim it, a port GUID
// has priority over an alias, then the port that was found first.
func (b *Book) ByGUID(g ib.GUID) *EndPort { return b.guids.get(g) }

// EndPort returns an end port by its id, or nil if it is no end port or has no LID.
func (b *Book) EndPort(id topo.PortID) *EndPort {
	if id < 0 || int(id) >= b.ports.Len() {
		return nil
	}
	return b.ports.At(int32(id))
}

// EndPorts returns all end ports that have a LID, ordered by GUID. It allocates a slice: call it once, or use [Book.All].
func (b *Book) EndPorts() []*EndPort {
	var all []*EndPort
	if b.View == nil {
		return nil
	}
	for _, id := range b.View.Fabric.EndPorts() {
		if e := b.EndPort(id); e != nil {
			all = append(all, e)
		}
	}
	return all
}

// All visits all end ports that have a LID, by LID.
func (b *Book) All() iter.Seq[*EndPort] {
	return func(yield func(*EndPort) bool) {
		for e := b.From(0); e != nil; e = b.From(e.LID + 1) {
			if !yield(e) {
				return
			}
		}
	}
}

// From returns the end port with the lowest base LID that is not below lid, or nil if there is none. Readers use it to read
// a table in pieces.
func (b *Book) From(lid ib.LID) *EndPort {
	for i := int32(lid); i < int32(b.lids.Len()); i++ {
		if e := b.lids.At(i); e != nil && e.LID == ib.LID(i) {
			return e
		}
	}
	return nil
}

// Holds returns the P_Key that an end port has for a partition. The partition is named by either of its P_Keys.
func (e *EndPort) Holds(k ib.PKey) (ib.PKey, bool) {
	switch {
	case !e.Matches(k.Full()):
		return 0, false
	case e.Matches(k.Limited()):
		return k.Full(), true
	default:
		return k.Limited(), true
	}
}

// Decoy returns an end port, always the same one for a GUID that no port has. Callers do the same work for it as for a real
// end port, so the response time does not show whether the GUID exists. It returns nil for an empty book.
func (b *Book) Decoy(g ib.GUID) *EndPort { return b.guids.near(g) }
