package rerouting

import (
	"time"

	"portcullis/fabricsm/topo"
)

// Switches that were out of sight still have their tables. New tables would cut off hosts that are not found again yet,
// so they wait for nodes that come back, and for the LIDs of their end ports, which are known and must be read.

const (
	returnWait  = 2 * time.Second       // how long tables that are needed wait at most
	returnFor   = time.Second           // and for the LID of one end port: a device that never answers delays them no longer
	returnEvery = 10 * time.Millisecond // how often all ports are looked at
)

// CameBack takes that a node was found whose LID was known before.
func (r *Routing) CameBack() { r.back = r.fabric.Now() }

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
	if most := r.since.Add(returnWait); by.After(most) {
		return most
	}
	return by
}

// isReturning reports whether an end port that came back lately has a known LID that was not read; it looks now and then.
func (r *Routing) isReturning() bool {
	now := r.fabric.Now()
	if r.tables == nil || now.Sub(r.back) > returnFor {
		return false
	}
	if now.Before(r.look) {
		return true
	}
	for p := range topo.PortID(r.topo.NumPorts()) {
		if r.fabric.IsAwaited(p, returnFor) && r.fabric.HasKnownLID(r.topo.GUIDOf(p)) && r.topo.Attachment(p) != topo.None {
			r.look = now.Add(returnEvery)
			r.fabric.LookLater(returnEvery)
			return true
		}
	}
	return false
}
