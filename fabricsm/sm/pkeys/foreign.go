package pkeys

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/topo"
)

// Foreign is what a port held that no membership explains: another subnet manager, or one of before, made it a member.
type Foreign struct {
	Place   ib.Place // the switch port that held them, or that is in front of the adapter; zero: there is none
	GUID    ib.GUID  // of the end port; zero: none is seen at the switch port
	Adapter bool     // the adapter held them; else the switch port
	PKeys   []ib.PKey
}

// reportForeign reports the P_Keys of tenants that the table of a port loses and no membership explains. It does so once until
// the table is what is wanted, also where the device does not accept the write.
func (k *Keeper) reportForeign(p topo.PortID, want partition.Table) {
	pt := &k.known.ports[p]
	if pt.foreign {
		return
	}
	t := k.planner.topo
	f := Foreign{Place: t.PlaceOf(p), Adapter: !t.IsExternal(p)}
	end := p
	if !f.Adapter {
		end = t.Peer(p)
	}
	if end != topo.None && t.IsEndPort(end) {
		f.GUID = t.GUIDOf(end)
	}
	for i, have := range pt.table.keys {
		if !members.IsTenant(have) || i < len(want) && want[i] == have || slices.ContainsFunc(want, func(w ib.PKey) bool { return w.Base() == have.Base() }) ||
			k.planner.members.Explains(f.GUID, f.Place, have) {
			continue
		}
		f.PKeys = append(f.PKeys, have)
	}
	if len(f.PKeys) > 0 {
		pt.foreign = true
		k.Judge.events.Foreign(&f)
	}
}
