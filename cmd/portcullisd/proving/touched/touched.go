// Package touched says what may have changed in a fabric between two views of the Subnet Manager, for a reading that builds on an
// earlier one.
//
// It says only where to read. What is there is read from the devices. A change that the Subnet Manager never saw is found by the next
// reading of everything.
package touched

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// Values is a set of values that may have changed. The zero Values is empty.
type Values struct {
	values  map[reader.Value]bool
	devices map[ib.GUID]bool // of which everything may have changed
}

// Has reports whether a value may have changed.
func (v *Values) Has(x reader.Value) bool { return v.values[x] || v.devices[x.Node] }

// IsEmpty reports whether nothing changed.
func (v *Values) IsEmpty() bool { return len(v.values) == 0 && len(v.devices) == 0 }

// Only returns all values that may have changed; nil if some device changed as a whole.
func (v *Values) Only() []reader.Value {
	if len(v.devices) > 0 {
		return nil
	}
	out := make([]reader.Value, 0, len(v.values))
	for x := range v.values {
		out = append(out, x)
	}
	return out
}

// Since returns what may have changed between two views of one Subnet Manager. Its cost grows with what changed, plus that of
// comparing the forwarding tables if routes were computed in between.
func Since(old, now *sm.View) *Values {
	v := &finder{old: old, now: now, Values: Values{values: map[reader.Value]bool{}, devices: map[ib.GUID]bool{}}}
	v.links()
	for p := range now.ChangedPKeys(old) {
		if hasOthers(old, now, p) {
			v.port(p, mad.AttrPKeyTable)
		}
	}
	for p := range now.KeysWrittenSince(&old.Devices) {
		v.port(p, mad.AttrPKeyTable)
	}
	for p := range now.LanesWrittenSince(&old.Devices) {
		v.port(p, mad.AttrSLtoVLMappingTable)
	}
	for p := range now.ChangedAliases(old) {
		v.port(p, mad.AttrGUIDInfo)
	}
	for p := range now.PortInfosSince(&old.Devices) {
		v.port(p, mad.AttrPortInfo)
	}
	for p := range now.LinksSince(&old.Devices) {
		v.link(p)
	}
	for _, attr := range []mad.AttrID{mad.AttrSwitchInfo, mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable} {
		for id := range now.SwitchesSince(&old.Devices, attr) {
			v.node(id, attr)
		}
	}
	v.routes()
	v.groups()
	return &v.Values
}

type finder struct {
	Values
	old, now *sm.View
}

// port adds an attribute of a port.
func (f *finder) port(p topo.PortID, attr mad.AttrID) {
	if n := f.now.Fabric.NodeOf(p); n.Type != 0 {
		f.values[reader.Value{Node: n.GUID, Port: f.now.Fabric.Port(p).Num, Attr: attr}] = true
	}
}

// links adds ports whose cable or state changed, with what is behind them, and devices that came or went.
func (f *finder) links() {
	was, is := f.old.Fabric, f.now.Fabric
	for p := range is.ChangedPorts(was) {
		port := is.Port(p)
		if int(p) < was.NumPorts() && *port == *was.Port(p) && same(is.Node(port.Node), was.Node(port.Node)) {
			continue
		}
		if int(p) >= was.NumPorts() || !same(is.Node(port.Node), was.Node(port.Node)) {
			f.device(port.Node)
			continue
		}
		f.link(p)
	}
}

// link adds what is behind a port, and what depends on its link.
func (f *finder) link(p topo.PortID) {
	for _, attr := range []mad.AttrID{mad.AttrNodeInfo, mad.AttrPortInfo, mad.AttrPKeyTable, mad.AttrSLtoVLMappingTable} {
		f.port(p, attr)
	}
}

// same reports whether a node is what it was, besides its name.
func same(a, b *topo.Node) bool {
	x, y := *a, *b
	x.Description, y.Description = "", ""
	return x == y
}

// device adds everything of a node, as it was and as it is.
func (f *finder) device(id topo.NodeID) {
	f.devices[f.now.Fabric.Node(id).GUID] = true
	if int(id) < f.old.Fabric.NumNodes() {
		f.devices[f.old.Fabric.Node(id).GUID] = true
	}
}

// node adds an attribute of a switch.
func (f *finder) node(id topo.NodeID, attr mad.AttrID) {
	if n := f.now.Fabric.Node(id); n.Type == ib.NodeSwitch {
		f.values[reader.Value{Node: n.GUID, Attr: attr}] = true
	}
}

// hasOthers reports whether the P_Key table of a port may hold other P_Keys than it did. That it was read again is no change, and
// neither is that a block was read for the first time, and is empty.
func hasOthers(old, now *sm.View, p topo.PortID) bool {
	for b := range max(old.PKeyBlocks(p), now.PKeyBlocks(p)) {
		was, is := old.PKeyBlock(p, b), now.PKeyBlock(p, b)
		isEmpty := !slices.ContainsFunc(is, func(k ib.PKey) bool { return k != 0 })
		if !slices.Equal(was, is) && (was != nil || !isEmpty) {
			return true
		}
	}
	return false
}

// routes adds the linear forwarding tables that differ.
func (f *finder) routes() {
	if f.now.Tables == f.old.Tables {
		return
	}
	for _, id := range f.now.Fabric.Switches() {
		a, b := f.old.Tables.LFT(id), f.now.Tables.LFT(id)
		if shares(a, b) || slices.Equal(a, b) {
			continue
		}
		f.node(id, mad.AttrLinearForwardingTable)
	}
}

// groups adds the multicast forwarding tables of switches where the tree of a group differs.
func (f *finder) groups() {
	if f.now.Multicast == f.old.Multicast {
		return
	}
	a, b := trees(f.old), trees(f.now)
	for mlid := range a {
		if shares(a[mlid], b[mlid]) {
			continue
		}
		f.branches(a[mlid], b[mlid])
		f.branches(b[mlid], a[mlid])
	}
	for mlid := range b {
		if _, was := a[mlid]; !was {
			f.branches(b[mlid], nil)
		}
	}
}

// branches adds the switches where one tree has something that another has not.
func (f *finder) branches(tree, other []mcast.Branch) {
	has := make(map[mcast.Branch]bool, len(other))
	for _, b := range other {
		has[b] = true
	}
	for _, b := range tree {
		if !has[b] {
			f.node(b.Switch, mad.AttrMulticastForwardingTable)
		}
	}
}

func trees(v *sm.View) map[ib.LID][]mcast.Branch {
	if v.Multicast == nil {
		return nil
	}
	all := make(map[ib.LID][]mcast.Branch, len(v.Multicast.Trees))
	for i := range v.Multicast.Trees {
		all[v.Multicast.Trees[i].MLID] = v.Multicast.Trees[i].Branches
	}
	return all
}

// shares reports whether two lists are the same memory.
func shares[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
