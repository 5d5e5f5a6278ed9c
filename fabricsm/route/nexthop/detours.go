package nexthop

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// maxDetours is how many moved entries are remembered. Beyond that the present
// routes are taken for the usual ones.
const maxDetours = 1 << 18

// detour is an entry that was moved, for one LID.
type detour struct {
	sw   int32
	port ib.PortNum
}

// unmoved stands for an entry that is no detour. No switch has a port of the
// number, and no entry that meant "nowhere" is remembered.
const unmoved = ib.NoPort

func (r *repairer) remember(key route.Entry, was ib.PortNum) {
	if r.notes.Detours == nil {
		r.notes.Detours = make(map[route.Entry]ib.PortNum)
	}
	r.notes.Detours[key] = was
}

// dropDetours drops detours of LIDs that are gone or moved.
func (r *repairer) dropDetours() {
	for e := range r.notes.Detours {
		if home := r.t.Home(e.LID); home == topo.None || home != r.prev.Home(e.LID) {
			delete(r.notes.Detours, e)
		}
	}
}

// sortDetours groups the moved entries by LID.
func (r *repairer) sortDetours() {
	r.moved = make(map[ib.LID][]detour)
	for e, port := range r.notes.Detours {
		if s := r.num[e.Switch]; s >= 0 && int(e.LID) < len(r.marked) && r.some[r.num[r.t.Home(e.LID)]] {
			r.moved[e.LID] = append(r.moved[e.LID], detour{s, port})
		}
	}
	r.before = make([]ib.PortNum, len(r.g.IDs))
	for s := range r.before {
		r.before[s] = unmoved
	}
}

// detour remembers what an entry of the LID in hand was.
func (r *repairer) detour(sw int32, l ib.LID, was ib.PortNum) {
	if r.before[sw] != unmoved || was == ib.NoPort {
		return
	}
	r.remember(route.Entry{Switch: r.g.IDs[sw], LID: l}, was)
}

// canGoBack reports whether an entry for a LID was moved and need no longer be.
func (r *repairer) canGoBack(dest int32, l ib.LID) bool {
	if !r.back && !r.all {
		return false
	}
	for _, d := range r.moved[l] {
		if d.sw != dest && r.keptEdge(dest, d.sw, d.port) >= 0 {
			return true
		}
	}
	return false
}
