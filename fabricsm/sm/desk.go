package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// desk is what packages that keep a part of the core's state ask of the core alike. Those that ask for more embed it.
type desk struct{ *Core }

// Now returns the time of the step.
func (d desk) Now() time.Time { return d.now }

// Age returns the time since the core began.
func (d desk) Age() time.Duration { return d.now.Sub(d.born) }

// After has an alarm raised after a time.
func (d desk) After(t time.Duration, a work.Alarm, x work.Ref) { d.after(t, a, x) }

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
