// Package quarantine puts actions into force on switch ports: those that follow from health, and those of the declared topology.
//
// Package health says which places misbehave, and which action follows. This package closes the ports: all of a place, or
// those in front of a switch. It never closes our own port and those that it depends on. It also says which place answers
// for the behaviour of a node or a link.
//
// The package has no clock. It marks which ports are to be read and written, and has links taken down.
package quarantine

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/portset"
	"portcullis/fabricsm/sm/tree"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Port is what is known of a port.
type Port struct {
	Info   *mad.PortInfo
	State  *State
	Set    *portset.State
	IsRead bool // PortInfo was read in this life of the link
}

// Fabric is what a Keeper asks of the core.
type Fabric interface {
	// Root returns the node that this subnet manager is attached to, and our port on it.
	Root() (topo.NodeID, topo.PortID)
	// IsAlive reports whether a node is part of the fabric.
	IsAlive(topo.NodeID) bool
	// IsWriting reports whether this subnet manager may change devices.
	IsWriting() bool
	// Port returns what is known of a port.
	Port(topo.PortID) Port
	// MayBeOff reports whether the declared topology waits to know if a port is switched off.
	MayBeOff(topo.PortID) bool
}

// Actions is what a Keeper has done.
type Actions interface {
	// Unlink takes the cable of a port away, and what could be reached over it alone.
	Unlink(topo.PortID)
	// Abandon ends what is asked and claimed behind a port.
	Abandon(topo.PortID)
	// ProbeSoon asks the device behind a port again, without the pause before that.
	ProbeSoon(topo.PortID)
	// TakeDown takes the link of a port down, and says what the port does then.
	TakeDown(topo.PortID, ib.PhysState)
	// Pause looks at a piece of work again after ever longer pauses.
	Pause(work.Ref)
	// Opened takes that a port that was switched off is on.
	Opened(topo.PortID)
}

// Keeper puts actions into force. Use New.
type Keeper struct {
	fabric  Fabric
	actions Actions
	topo    *topo.Builder
	tree    *tree.Tree
	queue   *work.Queue
	health  *health.Records
}

// Parts are what a Keeper works with.
type Parts struct {
	Fabric  Fabric
	Actions Actions
	Topo    *topo.Builder
	Tree    *tree.Tree
	Queue   *work.Queue
	Health  *health.Records
}

// New returns a keeper. What it works with stays the caller's.
func New(p *Parts) Keeper {
	return Keeper{fabric: p.Fabric, actions: p.Actions, topo: p.Topo, tree: p.Tree, queue: p.Queue, health: p.Health}
}

// Apply puts an action into force at a place, or at all links of a switch.
func (k *Keeper) Apply(at ib.Place, a health.Action) {
	if at.Port != 0 {
		if p := k.topo.SwitchPortAt(at); p != topo.None {
			k.put(p, a)
		}
		return
	}
	id := k.topo.NodeByGUID(at.Switch)
	if id == topo.None || a <= health.Ignore {
		return // the ports in front of it recover by themselves
	}
	var facing []topo.PortID
	k.topo.EachExternal(id, func(q topo.PortID) {
		if p := k.topo.Peer(q); p != topo.None && k.topo.IsExternal(p) {
			facing = append(facing, p)
		}
	})
	for _, p := range facing {
		k.shun(p, at)
	}
}

// IsShunned puts the action into force that a switch behind a port has earned, if any. It reports whether nothing behind the
// port is read.
func (k *Keeper) IsShunned(p topo.PortID, sw ib.GUID) bool {
	at := ib.Place{Switch: sw}
	if k.health.ActionAt(at) <= health.Ignore {
		return false
	}
	k.shun(p, at)
	return k.fabric.Port(p).State.IsDark()
}

// shun quarantines a port because of the switch behind it, for as long as that is sick.
func (k *Keeper) shun(p topo.PortID, sw ib.Place) {
	if !k.topo.IsExternal(p) || k.IsProtected(p) {
		return
	}
	if a, ill := k.health.Shun(k.topo.PlaceOf(p), sw); ill {
		k.put(p, a)
	}
}

// IsProtected reports whether no action is taken on a port: our own and those that it depends on.
func (k *Keeper) IsProtected(p topo.PortID) bool {
	root, own := k.fabric.Root()
	return p == own || k.topo.Peer(p) == own || k.topo.Port(p).Node == root && k.topo.Node(root).Type != ib.NodeSwitch
}

// IsUntouchable reports whether no action is taken at a place: a protected port, or the switch that we are attached to.
func (k *Keeper) IsUntouchable(at ib.Place) bool {
	if at.Port != 0 {
		p := k.topo.SwitchPortAt(at)
		return p != topo.None && k.IsProtected(p)
	}
	id := k.topo.NodeByGUID(at.Switch)
	root, own := k.fabric.Root()
	return id != topo.None && (id == root || k.tree.Up(id) == own)
}

// put puts an action into force on a switch port that follows from health, or out of it.
func (k *Keeper) put(p topo.PortID, a health.Action) {
	if a == health.Ignore {
		a = health.Report
	}
	if k.topo.IsExternal(p) && !(a > health.Ignore && k.IsProtected(p)) {
		k.set(p, byHealth, a)
	}
}

// PutLaw puts an action into force on a switch port that follows from the declared topology, or out of it.
func (k *Keeper) PutLaw(p topo.PortID, a health.Action) {
	if k.set(p, byLaw, a) {
		k.queue.MarkPort(work.PKey, p)
	}
}

// set puts an action into force, and does what follows. It reports whether something changed.
func (k *Keeper) set(p topo.PortID, why cause, a health.Action) bool {
	s := k.fabric.Port(p).State
	if s.by[why] == a {
		return false
	}
	s.set(why, a)
	if a > health.Ignore {
		k.actions.Unlink(p)
		if k.fabric.Port(p).State.by[why] != a {
			return false // its own node went with the link
		}
		k.actions.Abandon(p)
	} else {
		k.actions.ProbeSoon(p)
	}
	k.queue.MarkPort(work.Info, p)
	k.queue.MarkPort(work.Set, p)
	return true
}

// Restore restores the quarantine that was in force at the ports of a node that is found again.
func (k *Keeper) Restore(id topo.NodeID) {
	if len(k.health.Sick()) == 0 {
		return
	}
	k.topo.EachExternal(id, func(p topo.PortID) {
		if a := k.health.ActionAt(k.topo.PlaceOf(p)); a > health.Ignore {
			k.fabric.Port(p).State.by[byHealth] = a
		}
	})
}
