package sm

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/sm/unread"
	"portcullis/fabricsm/topo"
)

// unreadFabric is the core as package unread uses it.
type unreadFabric struct{ desk }

var _ unread.Fabric = unreadFabric{}

func (f unreadFabric) Port(p topo.PortID) unread.Port {
	pt := &f.ports[p]
	return unread.Port{Info: &pt.info, IsRead: pt.known, IsAssumed: pt.unread}
}

func (f unreadFabric) IsAlive(id topo.NodeID) bool { return f.nodes[id].alive }
func (f unreadFabric) Doubt(p topo.PortID)         { f.ports[p].unread = false }
func (f unreadFabric) IsPending() bool             { return f.subtrees.IsPending() }
func (f unreadFabric) EndLevel() []topo.PortID     { return f.subtrees.EndLevel() }

// MustRead reports whether settings of a port depend on its own PortInfo. Speeds and widths cannot be set without
// knowing those that it supports.
func (f unreadFabric) MustRead(p topo.PortID) bool {
	return f.mkeys.IsOn() || f.pkeys.Concerns(p) || f.rules.LinkOf(p) != (portpolicy.Link{})
}

func (f unreadFabric) Assume(p topo.PortID, info mad.PortInfo) {
	pt := &f.ports[p]
	pt.unread, pt.fresh, pt.info = true, true, info
	f.touch(p)
	if f.topo.IsEndPort(p) {
		f.lids.Settle(p)
	}
}

// readEnds reads the end ports that were left unread, and reports whether there were any. An SM that is not master yet
// asks every port whether another SM is on it. Where no link was ever configured this is not needed, since there is no
// master then. It is still needed if other SMs are expected that share our SM_Key, as they may just be starting, too.
func (f unreadFabric) readEnds() bool {
	return (f.configured || !f.cfg.SMKey.IsZero()) && f.unread.ReadEnds()
}

// seen reports whether enough is known of a port to write to it.
func (pt *port) seen() bool { return pt.known || pt.unread }
