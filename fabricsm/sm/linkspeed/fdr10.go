package linkspeed

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// FDR10 is a speed of NVIDIA's that PortInfo shows as QDR; only MlnxExtendedPortInfo distinguishes the two. It is read in
// the background, and only where PortInfo shows QDR on a device of theirs: faster links cost nothing. A policy of link
// speeds is then put into force there, too. A policy that reaches up to FDR10 enables it, and a policy that ends at QDR
// disables it.

// fdr10 is what is known of it on a port.
type fdr10 uint8

const (
	fdr10Asked   fdr10 = 1 << iota // or it is known
	fdr10Enabled                   // on the port
	fdr10Active                    // the link runs at it
	fdr10Due                       // it is to be enabled or disabled
	fdr10Set                       // that was done, once while the link is up
)

// Note takes PortInfo of a port whose link is up, or is not, with the state that was known before.
func (l *Links) Note(p topo.PortID, was ib.PortState, isUp bool) {
	pt, pi := &l.ports[p], l.fabric.Info(p)
	slow := pi.LinkSpeedActive == ib.SpeedQDR && pi.LinkSpeedExtActive == 0 && pi.LinkSpeedExtActive2 == 0
	if !isUp || !slow || was >= ib.PortArmed && pi.PortState == ib.PortInit {
		pt.fdr10 = 0 // another link now, or another speed
	}
	if !isUp || !slow || pt.fdr10 != 0 {
		return
	}
	if tp := l.topo.Port(p); tp.Num == 0 || l.topo.Node(tp.Node).VendorID != mad.VendorMellanox {
		return
	}
	pt.fdr10 = fdr10Asked
	l.fabric.AskLater(p)
}

// NoteAgain takes PortInfo of a port under other rules.
func (l *Links) NoteAgain(p topo.PortID, isUp bool) {
	l.ports[p].fdr10 = 0 // whether it is as wanted
	l.Note(p, ib.PortNop, isUp)
}

// AsksFDR10 reports whether MlnxExtendedPortInfo of a port is of use.
func (l *Links) AsksFDR10(p topo.PortID) bool { return l.ports[p].fdr10&fdr10Asked != 0 }

// DueFDR10 reports whether FDR10 of a port has to be enabled or disabled, which mayWrite says can be done now.
func (l *Links) DueFDR10(p topo.PortID, mayWrite bool) (enable, due bool) {
	pt := &l.ports[p]
	if pt.fdr10&fdr10Due == 0 || !mayWrite {
		return false, false
	}
	pt.fdr10 = pt.fdr10&^fdr10Due | fdr10Set
	enable, _ = l.rules.FDR10(p)
	return enable, true
}

// Answer takes MlnxExtendedPortInfo of a port, zero if the device knows no such attribute, as it answered a Get, or a Set.
func (l *Links) Answer(p topo.PortID, method mad.Method, e *mad.MlnxExtendedPortInfo) {
	pt := &l.ports[p]
	if pt.fdr10 == 0 {
		return
	}
	was := pt.fdr10
	pt.fdr10 = fdr10Asked | was&fdr10Set
	if e.LinkSpeedEnabled&mad.MlnxSpeedFDR10 != 0 {
		pt.fdr10 |= fdr10Enabled
	}
	if e.LinkSpeedActive&mad.MlnxSpeedFDR10 != 0 {
		pt.fdr10 |= fdr10Active
	}
	enable, has := l.rules.FDR10(p)
	can := e.LinkSpeedSupported&mad.MlnxSpeedFDR10 != 0
	if has && can && was&fdr10Set == 0 && enable != (pt.fdr10&fdr10Enabled != 0) {
		pt.fdr10 |= fdr10Due
		l.queue.MarkPort(work.Vendor, p)
	}
	if method == mad.MethodSet && can {
		pt.retuned = true
		l.queue.MarkPort(work.Set, p) // it may be trained again
	}
	if pt.fdr10 != was {
		l.fabric.Show(p)
		l.Judge(p)
	}
}

// orFDR10 returns FDR10 for a link at QDR that is FDR10, and the given speed otherwise.
func orFDR10(s ib.Speed, is bool) ib.Speed {
	if is && s == ib.QDR {
		return ib.FDR10
	}
	return s
}
