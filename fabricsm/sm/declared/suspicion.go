package declared

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/health"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/verify"
)

// suspicion is a port behind which something is wrong, before that is acted on. An
// answer can be that of another port: while a cable nearer to us is moved, the
// directed route leads elsewhere. So the links on the way are asked again first.
type suspicion struct {
	since time.Time
	tries int
	lie   verify.Seen // the device that was seen last
}

// wavering counts suspicions of a port that came to nothing, because a repeated request got the true answer, or none. One
// in each waverPause is forgotten: the path to an honest device may be recabled once in a while.
type wavering struct {
	n  int
	at time.Time
}

const (
	// maxWaverings is how many of them there may be before a device that lies again is judged by its first answer.
	maxWaverings = 3
	waverPause   = 4 * time.Hour
)

// left returns how many of them count at a time.
func (w *wavering) left(now time.Time) int {
	if w == nil {
		return 0
	}
	return max(0, w.n-int(now.Sub(w.at)/waverPause))
}

// Wavered records that a suspicion of a port came to nothing.
func (l *Law) Wavered(p topo.PortID) {
	if l.asking[p] == nil {
		return
	}
	w := l.waverings[p]
	n := min(w.left(l.fabric.Now())+1, maxWaverings)
	l.waverings[p] = &wavering{n: n, at: l.fabric.Now()}
}

// maxDoubts is how often a suspicion is looked into before the port is left alone
// for a while: the way to it is broken.
const maxDoubts = 8

// convicted reports whether a fault behind port p was seen twice, and the links on the way to it were asked between.
func (l *Law) convicted(p topo.PortID, sent time.Time, lie verify.Seen) bool {
	s := l.asking[p]
	if s == nil {
		s = &suspicion{since: l.fabric.Now()}
		l.asking[p] = s
	}
	if s.lie = lie; s.tries > 0 && !sent.Before(s.since) && l.wayProven(p, s.since, sent) {
		l.Acquit(p)
		return true
	}
	if s.tries++; s.tries > maxDoubts {
		l.Acquit(p)
		l.act.Pause(p)
		return false
	}
	l.eachHop(p, func(hop topo.PortID) bool {
		if at, ok := l.proven[hop]; !ok || at.Before(s.since) {
			l.act.Doubt(hop, 0)
		}
		return true
	})
	l.act.Doubt(p, s.tries)
	return false
}

// Acquit ends a suspicion.
func (l *Law) Acquit(p topo.PortID) {
	if len(l.asking) == 0 {
		return
	}
	if delete(l.asking, p); len(l.asking) == 0 {
		clear(l.proven)
	}
}

// eachHop calls f with the ports that lead from one node to the next on the way to
// the node of p, while f says so. It reports whether f never said no.
func (l *Law) eachHop(p topo.PortID, f func(topo.PortID) bool) bool {
	for up := l.fabric.Up(l.topo.Port(p).Node); up != topo.None; up = l.fabric.Up(l.topo.Port(up).Node) {
		if !f(up) {
			return false
		}
	}
	return true
}

// wayProven reports whether all links on the way to a port were asked and are as expected, after a time and before another.
func (l *Law) wayProven(p topo.PortID, since, before time.Time) bool {
	return l.eachHop(p, func(hop topo.PortID) bool {
		at, ok := l.proven[hop]
		return ok && !at.Before(since) && !at.After(before)
	})
}

// noteProven records that the device behind a port was asked, and is as expected.
func (l *Law) noteProven(p topo.PortID, sent time.Time, v verify.Verdict) {
	if v != verify.Verified || len(l.asking) == 0 {
		return
	}
	l.Wavered(p)
	delete(l.asking, p)
	l.proven[p] = sent
}

// wavers reports whether a port is under suspicion, and too many earlier suspicions of it came to nothing. A device that
// lies in every other answer would otherwise stay part of the fabric. It is judged by its first answer, unless the path is
// to blame.
func (l *Law) wavers(p topo.PortID) bool {
	return len(l.asking) > 0 && l.asking[p] != nil && l.waverings[p].left(l.fabric.Now()) >= maxWaverings
}

// ConvictsSilent convicts the device behind a port that wavers if it is silent now.
func (l *Law) ConvictsSilent(p topo.PortID, sent time.Time) bool {
	if !l.wavers(p) {
		return false
	}
	s := l.asking[p]
	if !l.wayProven(p, s.since, sent) {
		return false
	}
	l.Acquit(p)
	l.judge.Link(s.lie)
	l.follow()
	return true
}

// isGuarded reports whether a switch port is never switched off (rule 6): our own, and the only way to a switch over links
// that are, or were, verified.
func (l *Law) isGuarded(at ib.Place) bool {
	p := l.topo.SwitchPortAt(at)
	if p == topo.None {
		return false
	}
	if l.fabric.IsProtected(p) {
		return true
	}
	if peer := l.topo.Peer(p); peer == topo.None || !l.topo.IsExternal(peer) || l.fabric.Own() == topo.None {
		return false // no way to a switch
	}
	if f := l.topo.Freeze(); l.guard == nil || l.guardOf != f {
		l.guardOf = f
		l.guard = verify.NewGuard(f, l.fabric.Own(), func(q topo.PortID) bool {
			return l.judge.WasVerified(ib.Place{Switch: f.NodeOf(q).GUID, Port: f.Port(q).Num})
		})
	}
	return l.guard.Protected(p)
}

// ActionOn returns what the declared topology does to a switch port.
func (l *Law) ActionOn(p topo.PortID) health.Action {
	if !l.IsOn() || l.fabric.IsProtected(p) {
		return health.Report
	}
	at := l.topo.PlaceOf(p)
	spec := l.judge.Spec()
	link, _ := spec.LinkAt(spec.SlotOf(topospec.EndAt(at)))
	if link != nil && link.State == topospec.NoDiscover {
		return health.NoDiscover
	}
	if !l.Enforces() {
		return health.Report
	}
	switch st, v, _ := l.judge.At(at); {
	case st == verify.StateDisabled:
		return health.Disable
	case st == verify.StateHeld && v != verify.Held:
		return health.Isolate
	case link != nil && link.State == topospec.Disabled && l.judge.Trusts(at.Switch):
		return health.Disable
	default:
		return health.Report
	}
}

// follow does what follows from what the judge found.
func (l *Law) follow() {
	l.todo = append(l.todo, l.judge.Changes()...)
	if l.busy {
		return
	}
	l.busy = true
	for i := 0; i < len(l.todo); i++ {
		ch := l.todo[i]
		l.change(&ch)
		l.todo = append(l.todo, l.judge.Changes()...)
	}
	l.todo, l.busy = l.todo[:0], false
}

// change does what follows from one transition of a port.
func (l *Law) change(ch *verify.Change) {
	if ch.To == verify.StateDisabled || ch.From == verify.StateDisabled {
		l.save(ch.At)
	}
	l.record(ch)
	p := l.topo.SwitchPortAt(ch.At)
	if p == topo.None {
		return
	}
	l.act.Impose(p)
	if ch.To == verify.StateVerified && ch.Seen.Type == ib.NodeSwitch {
		l.trusted(ch.Seen.GUID)
	}
	if ch.From == verify.StateDark && ch.To == verify.StateVerified || !l.fabric.IsAlive(l.topo.Port(p).Node) {
		return // it is about to be linked
	}
	l.act.Changed(p)
	if l.Enforces() {
		l.act.Disturb()
	}
}
