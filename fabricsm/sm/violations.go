package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
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
func (f violationFabric) ReadNotices(p topo.PortID)      { f.readNotices(p) }
func (f violationFabric) Report(e violation.Event)       { f.event(e) }
func (f violationFabric) ReportLater(d time.Duration)    { f.after(d, work.Violations, work.Ref{}) }
func (f violationFabric) CheckLater(p topo.PortID, d time.Duration) {
	f.after(d, work.Report, work.OnPort(work.Info, p))
}

func (f violationFabric) CanAsk(p topo.PortID) bool {
	return f.nodes[f.ports[p].node].alive && f.ports[p].known
}

// classTrap handles a trap of a class with keys: a GMP by which a device reports that it was shown a wrong key. It reports
// whether the MAD is one. Where keys of classes are managed, package keymgr answers it and finds out whether it is true,
// see ClassTrapJudged. Otherwise the device is answered without a key, as it has none of ours, unless the trap shows one.
func (c *Core) classTrap(in *Received) bool {
	m := &in.MAD
	class, ok := mad.LookupKeyClass(m.Class())
	if !ok || m.Method() != mad.MethodTrap || m.Attr() != mad.AttrNotice || m.BaseVersion() != 1 {
		return false
	}
	c.tally.Traps++
	c.tally.ClassTraps++
	t := violation.ClassTrap{MAD: m, Class: class, LID: in.LID, From: c.byLID(in.LID), Managed: c.cfg.ClassKeys.On()}
	forged, ok := c.reports.NoteClassTrap(&t)
	switch {
	case !ok:
		c.dropped++
	case t.From != topo.None && !t.Managed && !forged:
		c.out.Answer = append(c.out.Answer, Response{LID: in.LID, QP: in.QP, MAD: *m})
		c.out.Answer[len(c.out.Answer)-1].MAD.Respond(mad.StatusOK)
	}
	return true
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

// judgeClass sets the verdict of the last row that a device reported about a class.
func (c *Core) judgeClass(in *ClassTrapJudged) {
	p, ok := c.byPort[in.GUID]
	if !ok {
		p = topo.None
	}
	c.reports.JudgeClass(p, violation.ClassJudgment(*in))
}
