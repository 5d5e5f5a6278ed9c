package sm

import (
	"portcullis/fabricsm/ib"
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
