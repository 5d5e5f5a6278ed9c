package sim

import (
	"maps"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Sets counts, for one sender, the subnet management Sets that devices took.
type Sets struct {
	ByAttr   map[mad.AttrID]uint64
	Tables   map[Endpoint]uint64 // Sets of P_KeyTable, by the port that they are for
	LIDs     uint64              // Sets of PortInfo that changed a LID
	Renewals uint64              // Sets of PortInfo with ClientReregister
}

// Sets returns the writes of each sender, by the name of its node, since the fabric was made.
func (f *Fabric) Sets() map[string]Sets {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[string]Sets, len(f.sets))
	for name, s := range f.sets {
		out[name] = Sets{ByAttr: maps.Clone(s.ByAttr), Tables: maps.Clone(s.Tables), LIDs: s.LIDs, Renewals: s.Renewals}
	}
	return out
}

// written counts a Set that a device takes. Called with mu held, before it is taken.
func (f *network) written(fl *flight, at *port) {
	if fl.origin == nil || !fl.mad.IsSMP() {
		return
	}
	name := fl.origin.at.node.name
	s := f.sets[name]
	if s == nil {
		s = &Sets{ByAttr: make(map[mad.AttrID]uint64), Tables: make(map[Endpoint]uint64)}
		f.sets[name] = s
	}
	s.ByAttr[fl.mad.Attr()]++
	if fl.mad.Attr() == mad.AttrPKeyTable {
		num := at.num
		if at.node.typ == ib.NodeSwitch {
			num = ib.PortNum(fl.mad.Mod() >> 16)
		}
		s.Tables[Endpoint{Node: at.node.name, Port: num}]++
	}
	var info mad.PortInfo
	if fl.mad.Attr() != mad.AttrPortInfo || mad.Decode(fl.mad.Data(), &info) != nil {
		return
	}
	if info.ClientReregister {
		s.Renewals++
	}
	if p := at.selected(fl.mad.Mod()); p != nil && p == p.endPort() && p.info.LID != info.LID {
		s.LIDs++
	}
}
