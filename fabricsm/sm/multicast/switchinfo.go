package multicast

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Asked is what a Set of SwitchInfo asked for.
type Asked struct {
	top                 ib.LID
	primary, notPrimary ib.PortNum
}

// AskedBy returns what a SwitchInfo asks for.
func AskedBy(si *mad.SwitchInfo) Asked {
	return Asked{si.MulticastFDBTop, si.DefaultMulticastPrimaryPort, si.DefaultMulticastNotPrimaryPort}
}

// Missed reports which of those fields a switch did not keep.
func (a Asked) Missed(got *mad.SwitchInfo) (top, ports bool) {
	is := AskedBy(got)
	return is.top != a.top, is.primary != a.primary || is.notPrimary != a.notPrimary
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
