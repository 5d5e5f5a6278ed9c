package sm

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/lanes"
	"portcullis/fabricsm/sm/portview"
	"portcullis/fabricsm/topo"
)

// shownSource is the core as package portview uses it.
type shownSource struct{ desk }

var _ portview.Source = shownSource{}

func (s shownSource) Lanes(p topo.PortID) lanes.Shown { return s.lanes.Show(p) }
func (s shownSource) Noted(p topo.PortID) *bool       { return &s.ports[p].due }
func (s shownSource) NodeNoted(id topo.NodeID) *bool  { return &s.nodes[id].due }

func (s shownSource) PortInfo(p topo.PortID) *mad.PortInfo {
	pt := &s.ports[p]
	if !pt.known || !s.nodes[pt.node].alive {
		return nil
	}
	return &pt.info
}

func (s shownSource) SwitchInfo(id topo.NodeID) *mad.SwitchInfo {
	n := &s.nodes[id]
	if !n.alive || !n.sw.IsKnown() {
		return nil
	}
	return n.sw.Info()
}
