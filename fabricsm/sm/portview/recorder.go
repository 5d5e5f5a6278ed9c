package portview

import (
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/aliases"
	"portcullis/fabricsm/sm/lanes"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/pkeys"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Source is what a Recorder asks of the core.
type Source interface {
	// PortInfo returns what a port last showed, nil if it was not read.
	PortInfo(topo.PortID) *mad.PortInfo
	// Lanes returns what is to be shown of the lanes of a port.
	Lanes(topo.PortID) lanes.Shown
	// SwitchInfo returns what a switch last showed, nil if it was not read.
	SwitchInfo(topo.NodeID) *mad.SwitchInfo
	// Noted returns the mark of a port that NotePort sets, and NodeNoted that of a node.
	Noted(topo.PortID) *bool
	NodeNoted(topo.NodeID) *bool
}

// Recorder writes down what snapshots show, for those ports and switches that changed since the last one. Use New.
type Recorder struct {
	source   Source
	topo     *topo.Builder
	ports    topo.OwnPages[*port]                 // by topo.PortID, nil: not read
	switches topo.OwnPages[*[SwitchInfoSize]byte] // by topo.NodeID, nil: no switch, or not read
	duePorts []topo.PortID                        // that changed since, each once
	dueNodes []topo.NodeID
	stirs    recordedStirs
	scratch  port
	recent   [4]*port // made last, to be shared: ports of a switch often show the same
	recentAt int
}

// New returns a Recorder of a fabric.
func New(s Source, t *topo.Builder) Recorder { return Recorder{source: s, topo: t} }

// NotePort has the next snapshot show a port again.
func (r *Recorder) NotePort(p topo.PortID) {
	if due := r.source.Noted(p); !*due {
		*due = true
		r.duePorts = append(r.duePorts, p)
	}
}

// NoteSwitch has the next snapshot show SwitchInfo of a switch again.
func (r *Recorder) NoteSwitch(id topo.NodeID) {
	if due := r.source.NodeNoted(id); !*due {
		*due = true
		r.dueNodes = append(r.dueNodes, id)
	}
}

// Rest is what a snapshot shows that others record.
type Rest struct {
	Fabric  *topo.Fabric
	Routes  *route.Tables
	Lanes   lanes.View
	PKeys   topo.Pages[*pkeys.Table] // by PortID, nil: not read
	MKeys   topo.Pages[*mkeys.State] // by PortID, nil: nothing is known
	Aliases *aliases.Shown
}

// Devices returns a snapshot that shows these values.
func (r *Rest) Devices() Devices {
	return Devices{fabric: r.Fabric, routes: r.Routes, lanes: r.Lanes, pkeys: r.PKeys, mkeys: r.MKeys, aliases: r.Aliases}
}

// Show writes down what changed, and returns a snapshot.
func (r *Recorder) Show(rest *Rest) Devices {
	r.ports.Grow(r.topo.NumPorts())
	r.switches.Grow(r.topo.NumNodes())
	for _, p := range r.duePorts {
		*r.source.Noted(p) = false
		r.showPort(p)
	}
	for _, id := range r.dueNodes {
		*r.source.NodeNoted(id) = false
		r.showSwitch(id)
	}
	r.duePorts, r.dueNodes = work.Again(r.duePorts), work.Again(r.dueNodes)
	d := rest.Devices()
	d.ports, d.switches, d.stirs = r.ports.Snapshot(), r.switches.Snapshot(), r.stirs.snapshot()
	return d
}

// showPort writes down a port, unless it shows what it did before.
func (r *Recorder) showPort(p topo.PortID) {
	was := r.ports.At(int32(p))
	info := r.source.PortInfo(p)
	if info == nil {
		if was != nil {
			r.ports.Set(int32(p), nil)
		}
		return
	}
	is := &r.scratch
	*is = port{lanes: r.source.Lanes(p)}
	mad.MustEncode(is.info[:], info)
	clear(is.info[:8]) // M_Key
	if was == nil || *is != *was {
		r.ports.Set(int32(p), r.kept(is))
	}
}

// showSwitch writes down a switch, unless it shows what it did before.
func (r *Recorder) showSwitch(id topo.NodeID) {
	is := r.source.SwitchInfo(id)
	if is == nil {
		r.switches.Set(int32(id), nil)
		r.StirSwitch(id, mad.AttrSwitchInfo)
		return
	}
	info := new([SwitchInfoSize]byte)
	mad.MustEncode(info[:], is)
	if was := r.switches.At(int32(id)); was == nil || *was != *info {
		r.switches.Set(int32(id), info)
		r.StirSwitch(id, mad.AttrSwitchInfo)
	}
}

// kept returns a lasting copy of s, shared with a recent one that is equal.
func (r *Recorder) kept(s *port) *port {
	for _, o := range r.recent {
		if o != nil && *o == *s {
			return o
		}
	}
	n := *s
	r.recent[r.recentAt] = &n
	r.recentAt = (r.recentAt + 1) % len(r.recent)
	return &n
}
