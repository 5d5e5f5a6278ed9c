package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// violationFabric is the core as package violation uses it, which lists what devices report.
type violationFabric struct{ *Core }

var _ violation.Fabric = violationFabric{}

func (f violationFabric) Now() time.Time                 { return f.now }
func (f violationFabric) Own() topo.PortID               { return f.own() }
func (f violationFabric) ByLID(l ib.LID) topo.PortID     { return f.byLID(l) }
func (f violationFabric) LIDOf(p topo.PortID) ib.LID     { return f.ports[p].lid }
func (f violationFabric) PlaceOf(p topo.PortID) ib.Place { return f.topo.PlaceOf(p) }
func (f violationFabric) ReadCounters(p topo.PortID)     { f.background(p) }
func (f violationFabric) ReadNotices(p topo.PortID)      { notices{desk(f)}.read(p) }
func (f violationFabric) Report(e violation.Event)       { f.event(e) }
func (f violationFabric) ReportLater(d time.Duration)    { f.after(d, work.Violations, work.Ref{}) }
func (f violationFabric) CheckLater(p topo.PortID, d time.Duration) {
	f.after(d, work.Report, work.OnPort(work.Info, p))
}

func (f violationFabric) CanAsk(p topo.PortID) bool {
	return f.nodes[f.ports[p].node].alive && f.ports[p].known
}

// ClassTrapJudged is the input by which package keymgr says how many of the violations that its last trap reported a device
// has counted.
type ClassTrapJudged struct {
	Kind    keys.Kind // CCKey, VSKey or N2NKey
	GUID    ib.GUID   // port GUID of the device
	Counted uint32    // 0: nothing, so another device sent the trap
	Earlier bool      // it had counted it when it was asked before: the trap is late
	Unsure  bool      // traps named different sources, and nothing proves that the last one is right
}

func (*ClassTrapJudged) input() {}
