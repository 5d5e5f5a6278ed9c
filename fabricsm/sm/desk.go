package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/topo"
)

// desk is what packages that keep a part of the core's state ask of the core alike. Those that ask for more embed it.
type desk struct{ *Core }

// Now returns the time of the step.
func (d desk) Now() time.Time { return d.now }

// PortByGUID returns the end port that shows a GUID.
func (d desk) PortByGUID(guid ib.GUID) (topo.PortID, bool) {
	p, ok := d.byPort[guid]
	return p, ok
}

// Report has an event sent.
func (d desk) Report(e fault.Event) { d.event(e) }

// Problem reports a fault, once, and keeps it in the views until it is solved.
func (d desk) Problem(k fault.Key, e fault.Event) { d.problem(k, e) }

// Solved removes a fault from the views.
func (d desk) Solved(k fault.Key) { d.faults.Clear(k) }
