package refusing

import (
	"cmp"
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// IsHeld reports whether the link of a port must not leave Init: it is closed, or the adapter behind it answers under a key
// that is none of ours.
func (a *Adapters) IsHeld(p topo.PortID) bool {
	return a.isClosed(p) || a.topo.IsExternal(p) && a.hasOtherKey(a.topo.Peer(p))
}

// hasOtherKey reports whether an adapter answers under a key that is none of ours.
func (a *Adapters) hasOtherKey(p topo.PortID) bool {
	if !a.keys.IsOn() || p == topo.None || !a.fabric.IsAdapter(p) {
		return false
	}
	do, keyed := a.keys.Do(p)
	return keyed && (do == keys.Foreign || do == keys.Stranded)
}

// isClosed reports whether a switch port is closed.
func (a *Adapters) isClosed(sp topo.PortID) bool {
	if len(a.closed) == 0 || !a.topo.IsExternal(sp) {
		return false
	}
	_, closed := a.closed[a.topo.PlaceOf(sp)]
	return closed
}

// AskClosed asks again behind switch ports that are closed. A restart does not show there: the port was in Init before.
func (a *Adapters) AskClosed() {
	a.asking = false
	if len(a.closed) == 0 {
		return
	}
	places := slices.SortedFunc(maps.Keys(a.closed), func(x, y ib.Place) int {
		return cmp.Or(cmp.Compare(x.Switch, y.Switch), cmp.Compare(x.Port, y.Port))
	})
	for _, place := range places {
		sp := a.topo.SwitchPortAt(place)
		if sp == topo.None || !a.fabric.IsAlive(a.nodeOf(sp)) {
			continue
		}
		if p := a.topo.Peer(sp); p != topo.None {
			a.actions.Doubt(p)
			a.actions.ReadPort(p)
		} else {
			a.queue.MarkPort(work.Probe, sp)
		}
	}
	a.askLater()
}

func (a *Adapters) askLater() {
	if !a.asking {
		a.asking = true
		a.actions.AskLater(askEvery)
	}
}

// KeepClosed takes the link of a switch port down again that is closed, if it is in use.
func (a *Adapters) KeepClosed(sp topo.PortID) {
	if a.isClosed(sp) {
		a.actions.Shut(sp)
	}
}

// Reopen takes that an adapter answers under a key of ours, or under none.
func (a *Adapters) Reopen(p topo.PortID) {
	place, sp := a.topo.PlaceOf(p), a.topo.Peer(p)
	was, closed := a.closed[place]
	if !closed {
		return
	}
	delete(a.closed, place)
	a.actions.Solved(keyRefused(place))
	a.actions.ReportObeyed(was.guid, place)
	a.queue.MarkPort(work.Set, sp)
}

// LinkDown takes that a switch port has no link: if that is not from being closed, the cable was pulled, or the host is off.
func (a *Adapters) LinkDown(sp topo.PortID) {
	place := a.topo.PlaceOf(sp)
	if was, closed := a.closed[place]; closed && a.fabric.Now().Sub(was.at) > closedFor {
		delete(a.closed, place)
		a.actions.Solved(keyRefused(place))
	}
}
