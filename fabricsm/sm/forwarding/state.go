// Package forwarding keeps what is known of the linear forwarding tables of switches, finds the blocks that have to be read
// and written so that they are as wanted, and puts writes in an order in which no packet loops.
//
// It has no clock and sends nothing. The core asks for the next block of a switch, and hands answers in.
package forwarding

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Switch is what has to be known of a node.
type Switch struct {
	Alive  bool
	Silent bool
	Known  bool   // SwitchInfo was read
	Top    ib.LID // its LinearFDBTop
}

// Fabric is what Tables ask of the core.
type Fabric interface {
	// IsWriting reports whether devices may be changed.
	IsWriting() bool
	SwitchOf(topo.NodeID) Switch
	// Wanted returns the tables that are wanted, nil before the first.
	Wanted() *route.Tables
	// IsPaused reports whether work failed and waits for its turn.
	IsPaused(work.Ref) bool
	// ReadsLater reports whether tables that are not read yet are read when ReadNow is called.
	ReadsLater() bool
	// MustWait reports whether nothing may be written to a switch yet. If so, the core marks the switch when it may.
	MustWait(topo.NodeID) bool
}

// Tables is the state of all forwarding tables. Use New.
type Tables struct {
	fabric  Fabric
	topo    *topo.Builder
	queue   *work.Queue
	nodes   []table       // by topo.NodeID
	pending int           // switches whose forwarding differs from what is wanted
	unread  int           // switches whose tables are to be read, and can be
	later   []topo.NodeID // whose tables are read when ReadNow is called; some more than once
	rollout rollout
}

// New returns the tables of a fabric without switches.
func New(f Fabric, t *topo.Builder, q *work.Queue) *Tables {
	return &Tables{fabric: f, topo: t, queue: q}
}

// Extend makes room for nodes.
func (t *Tables) Extend(nodes int) { t.nodes = topo.ExtendNodes(t.nodes, max(nodes, fewNodes)) }

// fewNodes is how many nodes there is room for at least.
const fewNodes = 128

// isSame reports whether a switch of a snapshot is still the one that has its id.
func (t *Tables) isSame(f *topo.Fabric, id topo.NodeID) bool {
	return t.fabric.SwitchOf(id).Alive && t.topo.NodeGUID(id) == f.Node(id).GUID
}

// rollout is the order in which changes of the tables of a running fabric are written. Blocks that repair a broken path
// come first. Among those, and among the others, the blocks nearest to the destinations come first: a switch learns a new
// route when the switches on it know theirs. So no packet loops between the old tables and the new ones, unless two LIDs of
// one block need different orders.
type rollout struct {
	steps []rolloutStep
	next  int // of steps
	open  int // blocks of the present stage that are not written yet
}

// rolloutStep is a block to be written.
type rolloutStep struct {
	sw    topo.NodeID
	block int32
	stage int32
}
