package multicast

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// asked is what a Set of SwitchInfo asks for.
type asked struct {
	top                 ib.LID
	primary, notPrimary ib.PortNum
}

func askedBy(si *mad.SwitchInfo) asked {
	return asked{si.MulticastFDBTop, si.DefaultMulticastPrimaryPort, si.DefaultMulticastNotPrimaryPort}
}

// Want fills in the fields of SwitchInfo that are about multicast, once the first groups have arrived. These are the end of
// the blocks that are in use, where a switch has that field, and, where it keeps them, that packets no entry matches are
// dropped.
func (g *Groups) Want(want *mad.SwitchInfo, hasTop, keepsPorts bool) {
	if want.MulticastFDBCap == 0 || !g.ready {
		return
	}
	if hasTop {
		n := max(g.blocks, blocksTo(g.forest.Top()))
		want.MulticastFDBTop = ib.MinMulticastLID + ib.LID(min(n*mad.MLIDsPerBlock, int(want.MulticastFDBCap))) - 1
	}
	if keepsPorts {
		want.DefaultMulticastPrimaryPort, want.DefaultMulticastNotPrimaryPort = ib.NoPort, ib.NoPort
	}
}

// Asked records those fields of a Set of SwitchInfo that goes out.
func (g *Groups) Asked(id topo.NodeID, want *mad.SwitchInfo) {
	g.asked = topo.ExtendNodes(g.asked, int(id)+1)
	g.asked[id] = askedBy(want)
}

// Missed reports which of those fields a switch did not keep.
func (g *Groups) Missed(id topo.NodeID, got *mad.SwitchInfo) (top, ports bool) {
	var was asked
	if int(id) < len(g.asked) {
		was = g.asked[id]
	}
	is := askedBy(got)
	return is.top != was.top, is.primary != was.primary || is.notPrimary != was.notPrimary
}
