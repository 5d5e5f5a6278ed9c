package traps

import (
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/topo"
)

// lookSoon looks at a node that sent a trap: at once, but no more often than Options.Hold allows.
func (j *Judge) lookSoon(id topo.NodeID) {
	l := j.fabric.Look(id)
	if !j.opt.Controls.Waits() {
		j.LookDue(id)
		return
	}
	if l.IsDue() {
		return
	}
	wait := l.Wait(j.fabric.Now())
	if wait == 0 && !j.mayLook(id) {
		wait = violation.CheckPause
	}
	if wait == 0 {
		j.LookDue(id)
		return
	}
	l.Await()
	j.actions.LookLater(id, wait)
}

// LookDue looks at a node whose turn has come.
func (j *Judge) LookDue(id topo.NodeID) {
	if !j.fabric.IsAlive(id) {
		return
	}
	l := j.fabric.Look(id)
	if l.IsDue() && !j.mayLook(id) {
		j.actions.LookLater(id, violation.CheckPause)
		return
	}
	l.Begin(j.fabric.Now(), j.opt.Hold)
	if j.isSwitch(id) {
		j.actions.ReadSwitch(id)
		return
	}
	// A new description of a host has no effect before it is read and differs.
	j.actions.Describe(id)
	tn := j.topo.Node(id)
	for i := 1; i <= int(tn.NumPorts); i++ {
		if p := tn.FirstPort + topo.PortID(i); j.topo.GUIDOf(p) != 0 && j.topo.Peer(p) != topo.None {
			j.actions.ReadPort(p)
			if sp := j.topo.Peer(p); j.topo.IsExternal(sp) {
				j.actions.Identify(sp) // is it still the same device?
			}
		}
	}
}

// mayLook reports whether a trap of a node may cause requests now. Those of hosts share one allowance.
func (j *Judge) mayLook(id topo.NodeID) bool { return j.isSwitch(id) || j.reports.MayLook() }
