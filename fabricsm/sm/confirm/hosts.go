package confirm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Hosts asks hosts for their identity once more before they are let in. Use NewHosts.
type Hosts struct {
	fabric Fabric
	topo   *topo.Builder
	queue  *work.Queue
}

// NewHosts returns the hosts of a fabric.
func NewHosts(f Fabric, t *topo.Builder, q *work.Queue) Hosts {
	return Hosts{fabric: f, topo: t, queue: q}
}

// See keeps account of whether the host behind a switch port was asked
// since its link was armed. It is called with every PortInfo.
func (h *Hosts) See(p topo.PortID) {
	if !h.topo.IsExternal(p) {
		return
	}
	pt := h.fabric.Port(p)
	switch {
	case pt.Info.PortState < ib.PortArmed:
		pt.Host.armed, pt.Host.confirmed = 0, false
	case pt.Host.armed == 0:
		pt.Host.armed = int64(h.fabric.Age()) + 1
		if !h.asksTwice(p) {
			h.fabric.AskLater(p)
		}
	}
}

// asksTwice reports whether the host behind a switch port has to be asked once more before it is let in. That is so where
// something is granted, or where the declared topology is enforced.
func (h *Hosts) asksTwice(p topo.PortID) bool { return h.fabric.Enforces() || h.fabric.Concerns(p) }

// Answered takes a probe that found the expected node. It was sent at an age of the core.
func (h *Hosts) Answered(p topo.PortID, sent time.Duration) {
	host := h.fabric.Port(p).Host
	host.asked = false
	switch {
	case host.armed == 0 || host.confirmed:
	case int64(sent) >= host.armed-1:
		host.confirmed = true
		h.queue.MarkPort(work.Set, p)
		if peer := h.topo.Peer(p); peer != topo.None {
			h.queue.MarkPort(work.Set, peer)
		}
		h.fabric.JudgePort(p)
	case h.asksTwice(p):
		h.ask(p)
	}
}

// IsConfirmed reports whether the host behind a switch port was asked for its identity since the link was armed. If not, it
// asks.
func (h *Hosts) IsConfirmed(sp topo.PortID) bool {
	if h.fabric.Port(sp).Host.confirmed {
		return true
	}
	h.ask(sp)
	return false
}

// ask has the host asked, unless that is being done or the link is not armed.
func (h *Hosts) ask(sp topo.PortID) {
	if h.fabric.Port(sp).Host.armed != 0 && !h.queue.IsAsked(work.Probe, sp) {
		h.fabric.Verify(sp)
		h.queue.MarkPort(work.Probe, sp)
	}
}

// MayActivate reports whether a port that is Armed may be made Active, as far as that depends on the identity of the host.
// It asks the host where it is to be asked first.
func (h *Hosts) MayActivate(p topo.PortID) bool {
	sp := p
	if !h.topo.IsExternal(p) {
		sp = h.topo.Peer(p)
	}
	if sp == topo.None || !h.topo.IsExternal(sp) {
		return true
	}
	end := h.topo.Peer(sp)
	if end == topo.None {
		return true
	}
	if h.topo.IsExternal(end) {
		return !h.fabric.Enforces() || h.IsConfirmed(min(sp, end))
	}
	if !h.topo.IsEndPort(end) {
		return true
	}
	if !h.fabric.IsKeySettled(end) || h.fabric.Switch(h.fabric.Port(sp).Node).unsure {
		return false
	}
	return !h.asksTwice(sp) && !h.fabric.Concerns(end) || h.IsConfirmed(sp)
}

// AskInBackground asks a host again for its identity, unless that was done or the link is away.
func (h *Hosts) AskInBackground(p topo.PortID) {
	host := h.fabric.Port(p).Host
	if peer := h.topo.Peer(p); host.armed != 0 && !host.confirmed && peer != topo.None && h.topo.IsEndPort(peer) {
		host.asked = true
		h.queue.MarkPort(work.Probe, p)
	}
}
