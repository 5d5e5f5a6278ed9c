// Package unread decides which ports need not be read before they are written, and when the ports of new switches are read.
//
// A link comes up at both ends at once and leaves both in Init (IBTA volume 1,
// 7.2.7); only a subnet manager moves them on. So when one end was read in Init,
// and a NodeInfo over the link said which port the other end is, that port need
// not be read before it is written: nothing lives on it, and the answer to a Set
// shows all of PortInfo (14.2.5.6). Should the device refuse, or should a grant
// depend on the port, it is read after all.
//
// The package has no clock and sends nothing. It marks which ports are to be read.
package unread

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Port is what is known of a port.
type Port struct {
	Info      *mad.PortInfo
	IsRead    bool // PortInfo was read in this life of the link
	IsAssumed bool // Info is a guess
}

// Fabric is what a Reader asks of the core, and what it has done.
type Fabric interface {
	// Port returns what is known of a port.
	Port(topo.PortID) Port
	// IsAlive reports whether a node is part of the fabric.
	IsAlive(topo.NodeID) bool
	// MustRead reports whether settings of a port depend on its own PortInfo.
	MustRead(topo.PortID) bool
	// Assume takes a guess for PortInfo of a port, until the answer to the first Set shows it.
	Assume(topo.PortID, mad.PortInfo)
	// Doubt forgets that PortInfo of a port is a guess.
	Doubt(topo.PortID)
	// IsPending reports whether nodes wait for the end of the level.
	IsPending() bool
	// EndLevel ends the level. It returns the ports behind which nodes waited for that.
	EndLevel() []topo.PortID
}

// Reader decides which ports are read. Use New.
type Reader struct {
	fabric Fabric
	topo   *topo.Builder
	queue  *work.Queue
	wire   *work.Window
	level  []topo.NodeID // switches whose ports are to be read next
}

// New returns a reader of a fabric.
func New(f Fabric, t *topo.Builder, q *work.Queue, w *work.Window) Reader {
	return Reader{fabric: f, topo: t, queue: q, wire: w}
}

// Leave takes the far end of a link that was just found: it is read only
// if it must be.
func (r *Reader) Leave(q topo.PortID) {
	if pt := r.fabric.Port(q); pt.IsRead || pt.IsAssumed || r.queue.IsAsked(work.Info, q) {
		return
	}
	if !r.MayWrite(q) {
		r.Read(q)
		return
	}
	r.queue.Unmark(work.OnPort(work.Info, q))
	r.fabric.Assume(q, portset.Guess(r.fabric.Port(r.topo.Peer(q)).Info))
}

// MayWrite reports whether a port which was never read may be written.
func (r *Reader) MayWrite(q topo.PortID) bool {
	peer := r.topo.Peer(q)
	if peer == topo.None || !r.topo.IsExternal(peer) {
		return false
	}
	pt := r.fabric.Port(peer)
	return pt.IsRead && pt.Info.PortState == ib.PortInit && !r.fabric.MustRead(q)
}

// Read reads a port that was left unread.
func (r *Reader) Read(q topo.PortID) {
	r.fabric.Doubt(q)
	r.queue.MarkPort(work.Info, q)
}

// ReadEnds reads the end ports that were left unread, and reports whether there were any.
func (r *Reader) ReadEnds() (any bool) {
	for p := range topo.PortID(r.topo.NumPorts()) {
		if r.fabric.Port(p).IsAssumed && r.topo.IsEndPort(p) {
			r.Read(p)
			any = true
		}
	}
	return any
}

// A new switch has most of its cables found from the nodes that are nearer to
// us. So its ports are read when those are done: the ports of a switch that are
// unknown then lead away from us, and every cable is asked for from one end.

// Enter has the ports of a switch that was found read at the end of the level.
func (r *Reader) Enter(id topo.NodeID) { r.level = append(r.level, id) }

// IsFinding reports whether ports of switches are still to be read.
func (r *Reader) IsFinding() bool { return len(r.level) > 0 }

// ReadLevel reads the ports of the switches that were found lately, once nothing
// is left to be found nearer to us. A node that keeps us waiting longer than is
// allowed does not hold that up.
func (r *Reader) ReadLevel() {
	if len(r.level) == 0 && !r.fabric.IsPending() || r.queue.MayFind() || r.wire.MayFind() {
		return
	}
	for _, p := range r.fabric.EndLevel() {
		r.queue.MarkPort(work.Probe, p)
	}
	level := r.level
	r.level = nil
	for _, id := range level {
		if !r.fabric.IsAlive(id) {
			continue
		}
		r.topo.EachExternal(id, func(p topo.PortID) {
			if pt := r.fabric.Port(p); !pt.IsRead && !pt.IsAssumed && !r.queue.IsAsked(work.Info, p) {
				r.queue.MarkPort(work.Info, p)
			}
		})
	}
}
