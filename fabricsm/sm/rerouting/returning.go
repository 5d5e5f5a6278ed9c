package rerouting

import (
	"time"

	"portcullis/fabricsm/topo"
)

// Switches that were out of sight still have their tables. New tables would cut off hosts that are not found again yet,
// so they wait for nodes that come back, and for the LIDs of their end ports, which are known and must be read.

const (
	returnWait  = 2 * time.Second       // how long tables that are needed wait at most, after the need or the last switch that came back
	returnMost  = 30 * time.Second      // and after the need in any case
	returnFor   = time.Second           // and for the LID of one end port: a device that never answers delays them no longer
	returnEvery = 10 * time.Millisecond // how often all ports are looked at
)

// CameBack takes that a node was found whose LID was known before. Hosts can have their link go down and up as often as they
// like, so only a switch has tables wait longer.
func (r *Routing) CameBack(isSwitch bool) {
	r.back = r.fabric.Now()
	if isSwitch {
		r.grown = r.back
	}
}

// Look has itself called again as long as needed tables have to wait.
func (r *Routing) Look() {
	if left := r.by().Sub(r.fabric.Now()); r.need && !r.running && left > 0 {
		r.fabric.LookLater(left)
	}
}

// by returns the time until which new tables wait: a while after the need, or after the last node that came back.
func (r *Routing) by() time.Time {
	by := r.since.Add(wait)
	if again := r.back.Add(wait); again.After(by) {
		by = again
	}
	if most := r.most(); by.After(most) {
		return most
	}
	return by
}

// most returns the time until which new tables wait at most.
func (r *Routing) most() time.Time {
	from := r.since
	if r.grown.After(from) {
		from = r.grown
	}
	if last := r.since.Add(returnMost); from.Add(returnWait).After(last) {
		return last
	}
	return from.Add(returnWait)
}

// isReturning reports whether a switch that came back lately may lead to more that was not found yet, or an end port that came
// back lately has a known LID that was not read; it looks at ports now and then.
func (r *Routing) isReturning() bool {
	now := r.fabric.Now()
	if r.tables == nil || now.Sub(r.back) > returnWait {
		return false
	}
	if now.Before(r.look) {
		return true
	}
	if now.Sub(r.grown) <= returnWait && r.fabric.MayFindMore() || r.isAwaited() {
		r.look = now.Add(returnEvery)
		r.fabric.LookLater(returnEvery)
		return true
	}
	return false
}

// isAwaited reports whether an end port that came back lately has a known LID that was not read.
func (r *Routing) isAwaited() bool {
	for p := range topo.PortID(r.topo.NumPorts()) {
		if r.fabric.IsAwaited(p, returnFor) && r.fabric.HasKnownLID(r.topo.GUIDOf(p)) && r.topo.Attachment(p) != topo.None {
			return true
		}
	}
	return false
}
