package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/election"
	"portcullis/fabricsm/sm/traps"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// trapFabric is the core as package traps knows it, and trapActions what that has it do.
type (
	trapFabric  struct{ desk }
	trapActions struct{ desk }
)

var (
	_ traps.Fabric  = trapFabric{}
	_ traps.Actions = trapActions{}
)

// newTraps returns the judge of traps of a core.
func newTraps(c *Core) traps.Judge {
	return traps.New(&traps.Parts{
		Fabric: trapFabric{desk{c}}, Actions: trapActions{desk{c}}, Topo: &c.topo, Reports: c.reports, Health: c.health, Tally: &c.tally,
	}, traps.Options{Hold: c.cfg.TrapHold, ManagesClass: c.cfg.ClassKeys.On(), Controls: c.cfg.Controls.Traps})
}

func (f trapFabric) Root() (topo.NodeID, topo.PortID)           { return f.root, f.rootPort }
func (f trapFabric) OwnLID() ib.LID                             { return f.smLID() }
func (f trapFabric) ByLID(l ib.LID) topo.PortID                 { return f.byLID(l) }
func (f trapFabric) IsAlive(id topo.NodeID) bool                { return f.nodes[id].alive }
func (f trapFabric) Look(id topo.NodeID) *traps.Look            { return &f.nodes[id].look }
func (f trapFabric) SuspectPlace(id topo.NodeID) ib.Place       { return f.quarantine.SuspectPlace(id) }
func (f trapFabric) KeyForAnswer(p topo.PortID) (ib.MKey, bool) { return f.mkeys.ForAnswer(p) }
func (f trapActions) ReadPort(p topo.PortID)                    { f.background(p) }

func (f trapActions) Answer(to ib.LID, qp uint32, m *mad.MAD) *mad.MAD {
	f.out.Answer = append(f.out.Answer, Response{LID: to, QP: qp, MAD: *m})
	return &f.out.Answer[len(f.out.Answer)-1].MAD
}

func (f trapActions) LookLater(id topo.NodeID, d time.Duration) {
	f.after(d, work.Verify, work.OnNode(work.Switch, id))
}

func (f trapActions) ReadSwitch(id topo.NodeID) {
	f.nodes[id].sw.Verify()
	f.q.MarkNode(work.Switch, id)
}

func (f trapActions) Describe(id topo.NodeID) {
	f.nodes[id].described = false
	f.q.MarkNode(work.Desc, id)
}

func (f trapActions) Identify(p topo.PortID) {
	if f.law.IsOn() {
		f.ports[p].host.Ask()
		f.q.MarkPort(work.Probe, p)
	}
}

func (f trapActions) AskManager(p topo.PortID) {
	f.election.AskAgain(p)
}

// received handles a MAD that does not answer a request of ours.
func (c *Core) received(in *Received) {
	p := traps.Packet{MAD: &in.MAD, LID: in.LID, QP: in.QP}
	taken := true
	switch traps.KindOf(in.QP, p.MAD) {
	case traps.OfClass:
		taken = c.traps.TakeOfClass(p)
	case traps.OfSubnet:
		taken = c.traps.Take(p)
	case traps.Repressed:
		// The master took our trap. It will look at us.
	case traps.OfManager:
		taken = c.election.Receive(election.Asked{MAD: p.MAD, LID: in.LID, QP: in.QP})
	case traps.Stray:
		// An honest device sends none, except to a subnet manager that was here before.
		from := topo.PortID(topo.None)
		if !p.MAD.Returning() { // else no switch wrote its way
			from = c.trust.Sender(&in.MAD, in.LID)
		}
		if s, loud := c.reports.NoteStray(p.MAD, in.LID, from); loud {
			c.event(&StrayAnswer{LID: in.LID, GUID: s.GUID, Place: s.Place, Attr: p.MAD.Attr(), Count: s.Count})
		}
		taken = false
	case traps.Unwanted:
		taken = false
	}
	if !taken {
		c.dropped++
	}
}

// byLID returns the end port that has a LID now.
func (c *Core) byLID(l ib.LID) topo.PortID {
	p, ok := c.byPort[c.lids.At(l)]
	if !ok || c.ports[p].lid != l&^(1<<c.lids.LMC(p)-1) {
		return topo.None
	}
	return p
}
