package conf

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/topo"
)

// Places remembers where GUIDs were taken to be.
type Places map[ib.GUID]ib.Place

// Members gives the members that the rules make in a fabric, each at the place
// where its GUID is seen, and those places. self is the Subnet Manager's port.
// Ports that are cabled to no switch are left out. Of several places that show
// a GUID the one in before stays; when none of them is in before, the GUID is
// nowhere: nobody can tell which is right.
func (r *Rules) Members(f *topo.Fabric, self ib.GUID, before Places) ([]partition.Member, Places) {
	var members []partition.Member
	now := Places{}
	add := func(g ib.GUID, k ib.PKey) {
		place, ok := now[g]
		if !ok {
			if place, ok = locate(f, g, before); !ok {
				return
			}
			now[g] = place
		}
		members = append(members, partition.Member{GUID: g, PKey: k, Place: place})
	}
	for _, part := range r.Partitions {
		for _, w := range part.Who {
			switch w.Group {
			case OnePort:
				add(w.GUID, part.PKey)
			case Self:
				add(self, part.PKey)
			case AllCAs:
				each(f, ib.NodeCA, func(g ib.GUID) { add(g, part.PKey) })
			case AllRouters:
				each(f, ib.NodeRouter, func(g ib.GUID) { add(g, part.PKey) })
			default: // the others are never in rules
			}
		}
	}
	return partition.NewRoster(members).All(), now
}

// each visits the port GUIDs of all nodes of a type.
func each(f *topo.Fabric, typ ib.NodeType, visit func(ib.GUID)) {
	for _, p := range f.EndPorts() {
		if f.NodeOf(p).Type == typ {
			visit(f.Port(p).GUID)
		}
	}
}

func locate(f *topo.Fabric, g ib.GUID, before Places) (ib.Place, bool) {
	var seen []ib.Place
	for _, p := range f.PortsByGUID(g) {
		at := f.PlaceOf(p)
		if at.IsZero() {
			continue
		}
		if at == before[g] {
			return at, true
		}
		seen = append(seen, at)
	}
	if len(seen) != 1 {
		return ib.Place{}, false
	}
	return seen[0], true
}
