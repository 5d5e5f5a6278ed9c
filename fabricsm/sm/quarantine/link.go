package quarantine

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Work brings the link of a port into the state that its quarantine asks for. It reports whether nothing else may be written
// to the port.
func (k *Keeper) Work(p topo.PortID) bool {
	pt := k.fabric.Port(p)
	action := pt.State.Action()
	if pt.State.reopens && action != health.Disable && pt.IsRead {
		if pt.Info.PortPhysicalState == ib.PhysDisabled {
			k.force(p, ib.PhysPolling)
			return true
		}
		if k.fabric.MayBeOff(p) {
			k.queue.MarkPort(work.Info, p)
			return true
		}
		pt.State.reopens = false
		k.actions.Opened(p)
	}
	switch {
	case !pt.State.IsDark():
		return false
	case !pt.IsRead:
	case action == health.Disable && pt.Info.PortPhysicalState != ib.PhysDisabled:
		k.force(p, ib.PhysDisabled)
	case action == health.Isolate && pt.Info.PortState > ib.PortInit:
		k.force(p, ib.PhysNop)
	default:
		pt.Set.Restart()
	}
	return true
}

// force takes the link of a switch port down and says what the port does then: nothing that it does not do by itself, poll,
// or stay switched off.
func (k *Keeper) force(p topo.PortID, phys ib.PhysState) {
	if s := k.fabric.Port(p).Set; s.IsStuck() {
		s.Restart()
		k.actions.Pause(work.OnPort(work.Set, p)) // it takes the Set and does not do it
		return
	}
	k.actions.TakeDown(p, phys)
}

// Shut takes the link of a switch port down that is in use and must not be: it comes back unconfigured.
func (k *Keeper) Shut(p topo.PortID) {
	pt := k.fabric.Port(p)
	if !k.fabric.IsWriting() || !k.topo.IsExternal(p) || !pt.IsRead || pt.Info.PortState <= ib.PortInit || k.queue.IsAsked(work.Set, p) || !k.fabric.IsAlive(k.topo.Port(p).Node) {
		return
	}
	k.actions.TakeDown(p, ib.PhysNop)
}
