package failures

import (
	"time"

	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// deadEnd records that a port of an adapter that was entered by itself is silent. That proves nothing about the other
// ports: the device there might only claim to be a port of that node.
func (l *List) deadEnd(r *work.Request) {
	l.Forget(r.Ref)
	q := r.Ref.Port()
	p := l.p.Topo.Peer(q)
	if l.p.Fabric.MayRefuse(q) {
		l.p.Actions.Refuse(q)
		l.p.Actions.ReportDead(p)
		l.Pause(r.Ref)
		return
	}
	pause := *l.p.Fabric.Port(p).Pause
	l.p.Actions.Unlink(p)
	l.p.Actions.ReportDead(p)
	pause = l.Longer(pause)
	*l.p.Fabric.Port(p).Pause = pause
	l.probeAfter(p, pause)
}

// noProbe handles a link that is up but has no answering node at its end.
func (l *List) noProbe(r *work.Request) {
	l.Forget(r.Ref)
	if r.Ref.Class == work.Root {
		l.p.Actions.After(l.lim.Min, work.Retry, r.Ref)
		return
	}
	p := r.Ref.Port()
	l.p.Keys.Unanswered(p)
	if l.p.Law.ConvictsSilent(p, r.Sent) {
		return
	}
	l.p.Law.Wavered(p)
	l.p.Law.Acquit(p)
	pt := l.p.Fabric.Port(p)
	if !pt.IsUp {
		return
	}
	peer := l.p.Topo.Peer(p)
	if peer != topo.None && l.p.Fabric.IsContested(p) {
		// The old place is dead and the new one answers: the cable was moved.
		l.p.Actions.Unlink(p)
	}
	*pt.Verify, *pt.Pause = false, l.Longer(*pt.Pause)
	pause := *pt.Pause
	if peer != topo.None && l.p.Topo.Peer(p) != topo.None {
		id := l.p.Topo.Port(peer).Node
		n := l.p.Fabric.Node(id)
		pause = max(pause, n.pause)
		*pt.Pause, n.pause = pause, pause
		if l.p.Fabric.IsSilent(id) {
			l.p.Tree.UseOther(id)
			if up := l.p.Tree.Up(id); up != topo.None && up != p { // the node we are attached to has none
				*pt.Pause = 0 // no timer asks here again: where another link is found here, it is asked at once
				p = up
			}
		}
	} else {
		l.p.Actions.ReportDead(p)
	}
	l.probeAfter(p, pause)
}

// silence stops asking a node that does not answer, but for a probe now and then over the ways it has.
func (l *List) silence(id topo.NodeID) {
	if l.p.Fabric.IsSilent(id) || !l.p.Fabric.IsAlive(id) {
		return
	}
	pause := l.p.Fabric.Node(id).fallSilent(l.p.Fabric.Now(), l.lim)
	l.p.Actions.Silence(id)
	l.p.Health.StrikeNode(id, health.Unresponsive)
	if !l.p.Fabric.IsAlive(id) {
		return // it is no longer looked at
	}
	l.p.Actions.Silenced(id)
	if root, _ := l.p.Fabric.Root(); id == root {
		l.p.Actions.After(l.lim.Min, work.Retry, work.OnNode(work.Root, 0))
		return
	}
	l.p.Tree.UseOther(id)
	l.probeAfter(l.p.Tree.Up(id), pause)
}

// probeAfter has the device behind a port asked after a time.
func (l *List) probeAfter(p topo.PortID, pause time.Duration) {
	l.p.Actions.After(pause, work.Retry, work.OnPort(work.Probe, p))
}

// Heard takes a sign of life.
func (l *List) Heard(id topo.NodeID) {
	n := l.p.Fabric.Node(id)
	n.answers++
	if l.p.Fabric.IsSilent(id) {
		n.back = l.p.Fabric.Now()
		l.p.Actions.Return(id)
	}
}
