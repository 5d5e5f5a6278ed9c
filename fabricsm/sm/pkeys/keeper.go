// Package pkeys makes the P_Key tables of end ports, and of the switch ports in front of them, what intents want them to be,
// and finds out which memberships are in force.
//
// It has no clock and sends nothing. The core asks for the next block of a port to be read or written, and hands answers in.
// A switch port comes before the adapter behind it, whether a key is added or removed.
package pkeys

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/members"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Options say which tables are wanted.
type Options struct {
	Rules    partition.Rules // but for SM and Controls
	Controls controls.Partitions
}

// Keeper keeps P_Key tables. Use New.
type Keeper struct {
	planner planner
	Judge   Judge
	queue   *work.Queue
	known   known
	block   mad.PKeyTable                     // room for one that is to be written
	sent    map[topo.PortID][perBlock]ib.PKey // by the last Set to a port
	later   []topo.PortID                     // that have blocks which wait for ReadNow
	looked  map[ib.Place]bool                 // switch ports that a takeover has seen
}

// New returns a keeper of the tables of a fabric without ports.
func New(f Fabric, e Events, t *topo.Builder, q *work.Queue, m *members.Register, o Options) *Keeper {
	o.Rules.Controls = o.Controls
	k := &Keeper{queue: q, known: newKnown(), sent: make(map[topo.PortID][perBlock]ib.PKey), looked: make(map[ib.Place]bool)}
	k.planner = planner{
		fabric: f, topo: t, members: m, known: &k.known, rules: o.Rules, switchFirst: o.Controls.SwitchFirst(),
		onlyDefault: partition.Table{ib.DefaultPKeyLimited},
	}
	k.Judge = Judge{planner: &k.planner, events: e, queue: q}
	return k
}

// Extend makes room for ports.
func (k *Keeper) Extend(ports int) { k.known.extend(ports) }

// Reset forgets all that is known of a port.
func (k *Keeper) Reset(p topo.PortID) {
	k.known.ports[p] = port{}
	k.known.shown.Set(int32(p), nil)
}

// Table returns what is known of the table of a port, nil if that is nothing.
func (k *Keeper) Table(p topo.PortID) *Table { return k.known.table(p) }

// Forget has the whole table of a port read again.
func (k *Keeper) Forget(p topo.PortID) { k.known.set(p, nil) }

// Doubt takes that blocks of a port which were read back may have changed since.
func (k *Keeper) Doubt(p topo.PortID) {
	if t := k.known.table(p); t != nil {
		k.known.set(p, t.doubted())
	}
}

// Show returns the tables as they are now, by topo.PortID.
func (k *Keeper) Show() topo.Pages[*Table] { return k.known.shown.Snapshot() }

// IsDone reports whether nothing is to be written to the table of a port now.
func (k *Keeper) IsDone(p topo.PortID) bool { return k.known.ports[p].done }

// Undo takes that something may have to be written to the table of a port.
func (k *Keeper) Undo(p topo.PortID) { k.known.ports[p].done = false }

// Moved takes that nodes, links or end ports changed, so that tables are planned on a new snapshot.
func (k *Keeper) Moved() { k.planner.snapshot = nil }

// Concerns reports whether the table of a port has to be proven: something is wanted of, or to be proven at, its place or
// its GUID.
func (k *Keeper) Concerns(p topo.PortID) bool { return k.planner.concerns(p) }

// Blocks returns the number of blocks of the table of a port that are managed, 0 if the table is not.
func (k *Keeper) Blocks(p topo.PortID) int {
	pt := k.planner.fabric.PortOf(p)
	return k.blocks(p, &pt)
}

func (k *Keeper) blocks(p topo.PortID, pt *Port) int {
	t := k.planner.topo
	room := int(t.Node(pt.Node).PartitionCap)
	if t.IsExternal(p) {
		peer := t.Peer(p)
		if !(peer != topo.None && t.IsEndPort(peer)) && !k.planner.members.HasAt(t.PlaceOf(p)) && !k.known.ports[p].table.hasTenants() {
			return 0
		}
		room = k.planner.fabric.NodeOf(pt.Node).Cap
	}
	return (room + perBlock - 1) / perBlock
}

// Audit has all blocks of a port read again, one after the other.
func (k *Keeper) Audit(p topo.PortID) {
	if t := k.known.ports[p].table; t != nil && k.Blocks(p) > 0 {
		k.known.ports[p].audit = uint16(len(t.blocks))
		k.queue.MarkPort(work.PKey, p)
	}
}

// ReadRest has the blocks of a port read that were left to the background.
func (k *Keeper) ReadRest(p topo.PortID) {
	pt := &k.known.ports[p]
	pt.listed = false
	if pt.table != nil {
		pt.rest = true
		k.queue.MarkPort(work.PKey, p)
	}
}

// HasLater reports whether blocks wait for ReadNow.
func (k *Keeper) HasLater() bool { return len(k.later) > 0 }

// ReadNow has the blocks read that were left for later.
func (k *Keeper) ReadNow() {
	later := k.later
	k.later = nil
	for _, p := range later {
		if pt := &k.known.ports[p]; pt.later {
			pt.later = false
			k.queue.MarkPort(work.PKey, p)
		}
	}
}

// Changed marks the ports that a membership concerns for work, at once if access is removed.
func (k *Keeper) Changed(ms *members.Membership) {
	mark := k.queue.Mark
	if ms.Leaving {
		mark = k.queue.MarkUrgent
	}
	k.Judge.events.Solved(ms.Refused())
	t := k.planner.topo
	if sp := t.SwitchPortAt(ms.Place); sp != topo.None {
		k.planner.fabric.Expel(ms.Place)
		mark(work.OnPort(work.PKey, sp))
	}
	if h, ok := k.planner.fabric.PortByGUID(ms.GUID); ok {
		if sp := t.Peer(h); sp != topo.None {
			mark(work.OnPort(work.PKey, sp))
		}
		mark(work.OnPort(work.PKey, h))
	}
	k.Judge.GUID(ms.GUID)
}
