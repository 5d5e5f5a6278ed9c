// Package registrytest provides a fabric for tests of registries.
package registrytest

import (
	"iter"
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/topo"
)

// Fabric is a completely known fabric. Change it on a Clone.
type Fabric struct {
	Ports map[ib.GUID]*portindex.EndPort // by port GUID
	Top   ib.LID                         // ceiling of multicast LIDs
	SL    ib.SL                          // of groups
	Must  bool                           // groups must have SL
	Busy  bool                           // it is not settled
	Doubt map[ib.GUID]bool               // ports of which tables were not read whole
}

var _ registry.Fabric = (*Fabric)(nil)

// SM is the port GUID of the Subnet Manager, with LID 1.
const SM ib.GUID = 0x5A

// New creates a fabric with the port of the Subnet Manager, a full member of the default partition.
func New() *Fabric {
	f := &Fabric{Ports: make(map[ib.GUID]*portindex.EndPort), Top: ib.MinMulticastLID + 1024, Doubt: make(map[ib.GUID]bool)}
	f.Add(SM, ib.DefaultPKeyFull)
	return f
}

// Add adds a port with a link of 100 Gb/s and 4096 bytes. Its PortID and its LID are the low bits of its GUID.
func (f *Fabric) Add(g ib.GUID, keys ...ib.PKey) *portindex.EndPort {
	e := &portindex.EndPort{
		Port: topo.PortID(g & 0x7FFFFFFF), Type: ib.NodeCA, GUID: g, LID: ib.LID(g & 0x3FFF), PKeys: keys,
		MTU: ib.MTU4096, LinkMTU: ib.MTU4096, Rate: ib.Rate100, LinkRate: ib.Rate100, Home: 1, HomePort: 1,
	}
	f.Ports[g] = e
	return e
}

// Clone returns a fabric for changes.
func (f *Fabric) Clone() *Fabric {
	n := *f
	n.Ports, n.Doubt = maps.Clone(f.Ports), maps.Clone(f.Doubt)
	return &n
}

// With returns a fabric with a port changed.
func (f *Fabric) With(g ib.GUID, change func(*portindex.EndPort)) *Fabric {
	n, e := f.Clone(), *f.Ports[g]
	change(&e)
	n.Ports[g] = &e
	return n
}

// Without returns a fabric without a port.
func (f *Fabric) Without(g ib.GUID) *Fabric {
	n := f.Clone()
	delete(n.Ports, g)
	return n
}

// Asker returns a port that sends requests for itself.
func (f *Fabric) Asker(g ib.GUID) portindex.Asker {
	e := f.Ports[g]
	return portindex.Asker{Port: e.Port, As: g, LID: e.LID, QP: 1}
}

// Trusted returns a requester that shows the SA_Key.
func (f *Fabric) Trusted(g ib.GUID) portindex.Asker {
	a := f.Asker(g)
	a.Trusted = true
	return a
}

// EndPort implements registry.Fabric.
func (f *Fabric) EndPort(p topo.PortID) *portindex.EndPort {
	if e := f.Ports[ib.GUID(p)]; e != nil && e.Port == p {
		return e
	}
	for _, e := range f.Ports {
		if e.Port == p {
			return e
		}
	}
	return nil
}

// ByGUID implements registry.Fabric.
func (f *Fabric) ByGUID(g ib.GUID) *portindex.EndPort {
	if e := f.Ports[g]; e != nil || g == 0 {
		return e
	}
	for _, port := range slices.Sorted(maps.Keys(f.Ports)) {
		if e := f.Ports[port]; slices.Contains(e.Aliases, g) {
			return e
		}
	}
	return nil
}

// ByLID implements registry.Fabric.
func (f *Fabric) ByLID(lid ib.LID) *portindex.EndPort {
	for _, e := range f.Ports {
		if e.LID == lid {
			return e
		}
	}
	return nil
}

// Changed implements registry.Fabric.
func (f *Fabric) Changed(old registry.Fabric) iter.Seq[ib.GUID] {
	was := make(map[ib.GUID]*portindex.EndPort)
	if o, ok := old.(*Fabric); ok && o != nil {
		was = o.Ports
	}
	return func(yield func(ib.GUID) bool) {
		all := maps.Clone(f.Ports)
		maps.Copy(all, was)
		for _, g := range slices.Sorted(maps.Keys(all)) {
			if f.Ports[g] != was[g] && !yield(g) {
				return
			}
		}
	}
}

// Settled implements registry.Fabric.
func (f *Fabric) Settled() bool { return !f.Busy }

// Lacks implements registry.Fabric.
func (f *Fabric) Lacks(e *portindex.EndPort, k ib.PKey) bool {
	return !f.Doubt[e.GUID] && !slices.ContainsFunc(e.PKeys, func(o ib.PKey) bool { return o.Base() == k.Base() })
}

// GUIDCap implements registry.Fabric: there is room for two blocks.
func (f *Fabric) GUIDCap(*portindex.EndPort) int { return 16 }

// PlaceOf implements registry.Fabric: each port is cabled to one switch, at the port whose number is the low byte of its
// LID. Ports without a home are exceptions.
func (f *Fabric) PlaceOf(e *portindex.EndPort) ib.Place {
	if e.Home == topo.None {
		return ib.Place{}
	}
	return ib.Place{Switch: 0x5000, Port: ib.PortNum(e.LID)}
}

// Issuer implements registry.Fabric.
func (f *Fabric) Issuer() (ib.LID, ib.GUID) { return 1, SM }

// Ceiling implements registry.Fabric.
func (f *Fabric) Ceiling() ib.LID { return f.Top }

// GroupSL implements registry.Fabric.
func (f *Fabric) GroupSL() (ib.SL, bool) { return f.SL, f.Must }
