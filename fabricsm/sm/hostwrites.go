package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/hostwrites"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// hostFabric is the core as package hostwrites uses it.
type hostFabric struct{ desk }

var _ hostwrites.Fabric = hostFabric{}

func (f hostFabric) Port(p topo.PortID) hostwrites.Port {
	pt := &f.ports[p]
	n := &f.nodes[pt.node]
	return hostwrites.Port{
		State: &pt.wrote, Node: pt.node, LID: pt.lid, GUIDCap: pt.info.GUIDCap, IsPlaced: pt.placed,
		IsUp: pt.known && pt.info.PortState >= ib.PortArmed && n.alive && !n.silent,
	}
}

func (f hostFabric) Own() topo.PortID                             { return f.own() }
func (f hostFabric) IsWriting() bool                              { return f.writing() }
func (f hostFabric) SMLID() ib.LID                                { return f.smLID() }
func (f hostFabric) LMC(p topo.PortID) ib.LMC                     { return f.lids.LMC(p) }
func (f hostFabric) Owner(l ib.LID) ib.GUID                       { return f.lids.At(l) }
func (f hostFabric) HasAliases(p topo.PortID) bool                { return f.aliases.Has(f.topo.GUIDOf(p)) }
func (f hostFabric) IsMember(g ib.GUID) bool                      { return f.members.Has(g) }
func (f hostFabric) ReadLater(p topo.PortID)                      { f.background(p) }
func (f hostFabric) Note(p topo.PortID, what violation.HostWrite) { f.reports.NoteHostWrite(p, what) }

// readLIDs reads LIDs of adapters, and has itself called again.
func (f hostFabric) readLIDs() {
	f.after(hostwrites.LIDTick, work.LIDs, work.Ref{})
	f.wrote.ReadLIDs(len(f.ports), len(f.byPort), f.cfg.LIDPeriod)
}

// askGUIDs asks for a block of GUIDs of an adapter that is to have no aliases.
func (f hostFabric) askGUIDs(p topo.PortID) {
	pt := &f.ports[p]
	block, due := pt.wrote.Due()
	if !due {
		return
	}
	f.auditing = true
	f.ask(work.OnPort(work.GUID, p), pt.node, mad.MethodGet, mad.AttrGUIDInfo, uint32(block))
	f.auditing = false
}

// gotGUIDs takes the answer, and writes the block without the GUIDs of others.
func (f hostFabric) gotGUIDs(p topo.PortID, r *work.Request, got *mad.GUIDInfo) {
	if f.wrote.TakeGUIDs(p, r, got) {
		m := f.ask(work.OnPort(work.GUID, p), f.ports[p].node, mad.MethodSet, mad.AttrGUIDInfo, r.Mod)
		f.encode(mad.Encode(m.Data(), got))
	}
}
