package portview

import (
	"iter"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// stir marks what was written or seen to change between two snapshots. Each snapshot has one of its own, so that a value which
// changed and changed back differs from one that did not change.
type stir struct{ _ byte }

// stirs are marks by id; nil: nothing happened yet.
type stirs = topo.Pages[*stir]

// marks are the newest marks of ports and nodes.
type marks[P any] struct {
	infos, links, keys, lanes P // by PortID
	switches, routes, trees   P // by NodeID
}

// shownStirs are the marks in a snapshot.
type shownStirs struct{ marks[stirs] }

// recordedStirs are the marks of a Recorder.
type recordedStirs struct {
	marks[topo.OwnPages[*stir]]
	now *stir // nil: nothing was marked since the last snapshot
}

func (r *recordedStirs) mark(pages *topo.OwnPages[*stir], id int32) {
	if r.now == nil {
		r.now = new(stir)
	}
	pages.Grow(int(id) + 1)
	if pages.At(id) != r.now {
		pages.Set(id, r.now)
	}
}

func (r *recordedStirs) snapshot() shownStirs {
	r.now = nil
	return shownStirs{marks[stirs]{
		infos: r.infos.Snapshot(), links: r.links.Snapshot(), keys: r.keys.Snapshot(), lanes: r.lanes.Snapshot(), switches: r.switches.Snapshot(), routes: r.routes.Snapshot(), trees: r.trees.Snapshot(),
	}}
}

// StirLink marks that the link of a port, or what is behind it, was seen to change.
func (r *Recorder) StirLink(p topo.PortID) { r.stirs.mark(&r.stirs.links, int32(p)) }

// StirPort marks that PortInfo of a port was written, or seen to change.
func (r *Recorder) StirPort(p topo.PortID) { r.stirs.mark(&r.stirs.infos, int32(p)) }

// StirKeys marks that the P_Key table of a port was written.
func (r *Recorder) StirKeys(p topo.PortID) { r.stirs.mark(&r.stirs.keys, int32(p)) }

// StirLanes marks that the SLtoVL tables of packets that leave by a port were written.
func (r *Recorder) StirLanes(p topo.PortID) { r.stirs.mark(&r.stirs.lanes, int32(p)) }

// StirSwitch marks that an attribute of a switch was written, or seen to change: SwitchInfo, LinearForwardingTable or
// MulticastForwardingTable. The others are not kept.
func (r *Recorder) StirSwitch(id topo.NodeID, attr mad.AttrID) {
	switch attr {
	case mad.AttrSwitchInfo:
		r.stirs.mark(&r.stirs.switches, int32(id))
	case mad.AttrLinearForwardingTable:
		r.stirs.mark(&r.stirs.routes, int32(id))
	case mad.AttrMulticastForwardingTable:
		r.stirs.mark(&r.stirs.trees, int32(id))
	}
}

// LinksSince visits the ports whose links may have changed since an older snapshot, also if they are what they were.
func (d *Devices) LinksSince(old *Devices) iter.Seq[topo.PortID] {
	return since[topo.PortID](&d.stirs.links, &old.stirs.links)
}

// PortInfosSince visits the ports whose PortInfo was written, or seen to change, since an older snapshot, also if it is what
// it was.
func (d *Devices) PortInfosSince(old *Devices) iter.Seq[topo.PortID] {
	return since[topo.PortID](&d.stirs.infos, &old.stirs.infos)
}

// KeysWrittenSince visits the ports whose P_Key tables were written since an older snapshot, also if they are what they were.
func (d *Devices) KeysWrittenSince(old *Devices) iter.Seq[topo.PortID] {
	return since[topo.PortID](&d.stirs.keys, &old.stirs.keys)
}

// LanesWrittenSince visits the ports of which SLtoVL tables were written since an older snapshot, also if they are what they were.
func (d *Devices) LanesWrittenSince(old *Devices) iter.Seq[topo.PortID] {
	return since[topo.PortID](&d.stirs.lanes, &old.stirs.lanes)
}

// SwitchesSince visits the switches of which SwitchInfo, LinearForwardingTable or MulticastForwardingTable was written since an
// older snapshot, also if it is what it was. Of other attributes it visits none.
func (d *Devices) SwitchesSince(old *Devices, attr mad.AttrID) iter.Seq[topo.NodeID] {
	now, was := &stirs{}, &stirs{}
	switch attr {
	case mad.AttrSwitchInfo:
		now, was = &d.stirs.switches, &old.stirs.switches
	case mad.AttrLinearForwardingTable:
		now, was = &d.stirs.routes, &old.stirs.routes
	case mad.AttrMulticastForwardingTable:
		now, was = &d.stirs.trees, &old.stirs.trees
	}
	return since[topo.NodeID](now, was)
}

func since[ID ~int32](now, was *stirs) iter.Seq[ID] {
	return func(yield func(ID) bool) {
		for i := range now.Changed(was) {
			if at(now, i) != at(was, i) && !yield(ID(i)) {
				return
			}
		}
	}
}
