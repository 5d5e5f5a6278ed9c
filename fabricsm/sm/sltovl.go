package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// slvlState is how far the SL-to-VL tables of a port are right.
type slvlState struct {
	phase slvlPhase
	in    uint8    // input port looked at, for switches programmed pair by pair
	vls   ib.VLCap // for which they were made
}

type slvlPhase uint8

const (
	slvlOpen   slvlPhase = iota
	slvlDiffer           // the table of the present input port was read and differs
	slvlDone
)

func (s slvlState) done() bool { return s.phase == slvlDone }

// wantSLtoVL maps each SL to the VL of the same number, as far as there are
// VLs.
func wantSLtoVL(vls ib.VLCap) (t mad.SLtoVLMappingTable) {
	n := max(1, vls.Count())
	for sl := range t.VL {
		t.VL[sl] = ib.VL(sl % n)
	}
	return t
}

// workSLtoVL reads and writes the SL-to-VL tables for packets that leave by a
// port.
func (c *Core) workSLtoVL(p topo.PortID) {
	pt := &c.ports[p]
	if !pt.seen() || pt.num == 0 || c.peer(p) == topo.None {
		return
	}
	if c.external(p) && !c.nodes[pt.node].infoKnown {
		return
	}
	vls := c.slvlVLs(p)
	if pt.slvl.done() && pt.slvl.vls == vls {
		return
	}
	if !c.programsSLtoVL(p) {
		pt.slvl = slvlState{phase: slvlDone, vls: vls}
		c.markPort(clsSet, p)
		return
	}
	if pt.slvl.vls != vls {
		pt.slvl = slvlState{vls: vls}
	}
	x := ref{clsSLtoVL, int32(p)}
	if pt.slvl.phase == slvlOpen && !pt.fresh {
		c.ask(x, pt.node, mad.MethodGet, mad.AttrSLtoVLMappingTable, c.slvlMod(p, false))
		return
	}
	if !c.writing() {
		return
	}
	want := wantSLtoVL(vls)
	m := c.ask(x, pt.node, mad.MethodSet, mad.AttrSLtoVLMappingTable, c.slvlMod(p, true))
	c.encode(mad.Encode(m.Data(), &want))
}

// relayered looks at the SL-to-VL tables of all ports again when forwarding
// begins, or ceases, to use several layers.
func (c *Core) relayered(was, now *route.Tables) {
	if (was.Layers() > 1) == (now.Layers() > 1) {
		return
	}
	for p := range c.ports {
		if pt := &c.ports[p]; pt.seen() && c.peer(topo.PortID(p)) != topo.None {
			pt.slvl = slvlState{}
			c.markPort(clsSLtoVL, topo.PortID(p))
		}
	}
}

func (c *Core) slvlVLs(p topo.PortID) ib.VLCap {
	w, _ := c.wantInfo(p)
	return w.OperationalVLs
}

func (c *Core) programsSLtoVL(p topo.PortID) bool {
	pt := &c.ports[p]
	capable := pt.info.CapabilityMask
	if c.external(p) {
		capable = c.ports[c.topo.Node(pt.node).FirstPort].info.CapabilityMask
	}
	switch {
	case c.cfg.SLtoVL == SLtoVLAuto && c.routing.tables.Layers() <= 1:
		return false
	case c.cfg.SLtoVL == SLtoVLOff || !capable.Has(mad.IsSLMappingSupported):
		return false
	case c.external(p):
		return c.cfg.SLtoVL == SLtoVLAll || c.wildcard(p)
	default:
		return true
	}
}

// wildcard reports a switch that programs all input ports with one Set.
func (c *Core) wildcard(p topo.PortID) bool {
	return c.external(p) && c.nodes[c.ports[p].node].info.OptimizedSLtoVLMappingProgramming&1 != 0
}

func (c *Core) slvlMod(p topo.PortID, write bool) uint32 {
	pt := &c.ports[p]
	switch {
	case !c.external(p):
		return 0
	case c.wildcard(p) && write:
		return mad.SLtoVLAllInputs | uint32(pt.num)
	default:
		return mad.SLtoVLMod(ib.PortNum(pt.slvl.in), pt.num)
	}
}

func (c *Core) gotSLtoVL(p topo.PortID, r *request, m *mad.MAD, status mad.Status) {
	pt := &c.ports[p]
	var got mad.SLtoVLMappingTable
	if mad.Decode(m.Data(), &got) != nil {
		return
	}
	switch {
	case status != mad.StatusOK && r.method == mad.MethodGet:
		// It says it has tables and does not show them: leave them alone.
		c.refused(r, status.String())
		pt.slvl.phase = slvlDone
		c.markPort(clsSet, p)
		return
	case status != mad.StatusOK:
		c.refused(r, status.String())
		return
	case r.method == mad.MethodGet && got != wantSLtoVL(pt.slvl.vls):
		pt.slvl.phase = slvlDiffer
	case c.external(p) && !c.wildcard(p) && pt.slvl.in < c.topo.Node(pt.node).NumPorts:
		pt.slvl.in, pt.slvl.phase = pt.slvl.in+1, slvlOpen
	default:
		pt.slvl.phase = slvlDone
		c.markPort(clsSet, p)
	}
	c.markPort(clsSLtoVL, p)
}
