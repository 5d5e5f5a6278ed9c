package nexthop

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// mark marks one LID, if it has a home.
func (r *repairer) mark(l ib.LID) {
	if int(l) >= len(r.marked) {
		return
	}
	if home := r.t.Home(l); home != topo.None {
		r.marked[l], r.some[r.num[home]] = true, true
	}
}

func (r *repairer) markAll() {
	r.all = true
	for dest := range r.whole {
		r.whole[dest], r.some[dest] = true, true
	}
}

// markLIDs marks LIDs that are new or have another home, and writes the last hop.
func (r *repairer) markLIDs() {
	for s, targets := range r.g.Targets {
		id := r.g.IDs[s]
		for _, t := range targets {
			if r.prev.Home(t.LID) != id {
				r.mark(t.LID)
				if r.gone {
					r.provisional(id)
				}
			} else if r.t.LFT(id)[t.LID] != t.Out {
				r.t.Writable(r.prev, id)[t.LID] = t.Out
			}
		}
	}
}

func (r *repairer) provisional(id topo.NodeID) {
	if r.notes.Provisional == nil {
		r.notes.Provisional = make(map[topo.NodeID]bool)
	}
	r.notes.Provisional[id] = true
}

// markBroken marks the LIDs of entries that lost their link, and when links are back
// those that were moved, which is all that they can matter to: the other routes were
// the right ones with all usual links there.
func (r *repairer) markBroken() {
	for _, b := range r.broken {
		r.mark(b.lid)
	}
	if r.back {
		for e := range r.notes.Detours {
			r.mark(e.LID)
		}
	}
	r.markProvisional()
}

// markProvisional marks the LIDs that were first routed while links were missing, when some are back.
func (r *repairer) markProvisional() {
	if !r.back {
		return
	}
	for id := range r.notes.Provisional {
		if s := r.num[id]; s >= 0 {
			r.whole[s], r.some[s] = true, true
		}
	}
}
