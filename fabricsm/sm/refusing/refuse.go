package refusing

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// MayRefuse reports whether an adapter answered under its key since its link came up, and is behind a switch port which can
// be closed.
func (a *Adapters) MayRefuse(p topo.PortID) bool {
	if !a.mayClose || !a.fabric.IsAdapter(p) || !a.fabric.Port(p).HasObeyed || !a.fabric.IsWriting() || a.keys.IsReleasing() || !a.fabric.IsAtPlace(p) {
		return false
	}
	sp := a.topo.Peer(p)
	pt := a.fabric.Port(sp)
	return pt.IsRead && pt.Info.PortState == ib.PortActive && !a.fabric.IsProtected(sp) && !a.fabric.IsSilent(a.nodeOf(sp))
}

// Refuses takes that an adapter answers under none of its keys. shown: an answer of it shows that it has another.
func (a *Adapters) Refuses(p topo.PortID, shown bool) {
	if !a.MayRefuse(p) {
		return
	}
	r := a.refusals[p]
	if r == nil {
		r = &refusal{place: a.topo.PlaceOf(p)}
		a.refusals[p] = r
		a.actions.ShowSoon() // counterwatch sees it there
	}
	if shown && !r.stopped {
		a.close(p, r)
	}
}

// Obeys takes that an adapter answered under its key, or that it has gone.
func (a *Adapters) Obeys(p topo.PortID) {
	if r := a.refusals[p]; r != nil {
		delete(a.refusals, p)
		a.actions.Solved(keyRefused(r.place))
		a.actions.ShowSoon()
	}
}

// Count takes how many packets an adapter of Adapters.List has sent, as the switch in front counts.
func (a *Adapters) Count(guid ib.GUID, packets uint64) {
	p, here := a.fabric.PortByGUID(guid)
	r := a.refusals[p]
	if !here || r == nil || r.stopped {
		return
	}
	answers := !a.isStranded(p) && !a.fabric.IsSilent(a.nodeOf(p)) && !a.fabric.IsPaused(work.OnPort(work.Info, p))
	if !a.MayRefuse(p) || answers {
		a.Obeys(p)
		return
	}
	if r.take(packets) {
		a.close(p, r)
	}
}

// isStranded reports whether a port answers under none of its keys.
func (a *Adapters) isStranded(p topo.PortID) bool {
	do, keyed := a.keys.Do(p)
	return keyed && do == keys.Stranded
}

// close closes the switch port in front of an adapter that refuses its key.
func (a *Adapters) close(p topo.PortID, r *refusal) {
	r.stopped = true
	sp, guid, place := a.topo.Peer(p), a.topo.GUIDOf(p), a.topo.PlaceOf(p)
	e := Refused{GUID: guid, Place: place, LID: a.fabric.Port(p).Info.LID, Packets: r.last - r.first}
	others, here := a.countLately(place)
	if e.Open = others >= MaxClosed; e.Open {
		a.actions.ReportRefused(e)
		return
	}
	a.lately = append(a.lately, past{place, a.fabric.Now()})
	a.actions.NoteWrite(p, e.LID)
	delete(a.refusals, p)
	a.closed[place] = closing{guid, a.fabric.Now()}
	a.askLater()
	a.actions.ReportRefused(e)
	if may := a.health.MayConfine(place); may && here+1 >= tooOften && a.health.IsMarked(place, health.MarkNone) {
		a.health.Confine(&health.Unhealthy{
			Place: place, GUID: a.topo.NodeGUID(a.nodeOf(p)), Condition: health.RefusesKey, Count: here + 1, Window: Window, Action: health.Isolate,
		})
		return // which closes it, too
	}
	if a.actions.Unlink(sp); a.fabric.IsAlive(a.nodeOf(sp)) {
		a.actions.Shut(sp)
		a.queue.MarkPort(work.Probe, sp)
	}
}

// countLately returns how often a switch port was closed within Window, and how often others were.
func (a *Adapters) countLately(place ib.Place) (others, here int) {
	now := a.fabric.Now()
	a.lately = slices.DeleteFunc(a.lately, func(c past) bool { return now.Sub(c.at) >= Window })
	for _, c := range a.lately {
		if c.place == place {
			here++
		} else {
			others++
		}
	}
	return others, here
}

// List returns the adapters whose packets are to be counted, by GUID, at most MaxClosed.
func (a *Adapters) List() (out []Listed) {
	for p, r := range a.refusals {
		if !r.stopped && a.MayRefuse(p) {
			sw := a.topo.Node(a.nodeOf(a.topo.Peer(p))).FirstPort
			out = append(out, Listed{GUID: a.topo.GUIDOf(p), Place: a.topo.PlaceOf(p), Switch: sw})
		}
	}
	slices.SortFunc(out, func(x, y Listed) int { return cmp.Compare(x.GUID, y.GUID) })
	return out[:min(len(out), MaxClosed)]
}
