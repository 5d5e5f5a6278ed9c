// Package linkspeed judges at which speed and width links run: below what both ends are enabled for, or other than what was
// enabled since they were trained.
//
// It has no clock and sends nothing. The core says how ports are, and takes links down to be trained.
package linkspeed

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/portpolicy"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Fabric is what Links ask of the core.
type Fabric interface {
	// Info returns PortInfo of a port, as it was read last, or is assumed.
	Info(topo.PortID) *mad.PortInfo
	// IsRead reports whether PortInfo of a port was read in this life of the link.
	IsRead(topo.PortID) bool
	// AskLater has MlnxExtendedPortInfo of a port read in the background.
	AskLater(topo.PortID)
	// Show takes the speed of a port where it is shown.
	Show(topo.PortID)
	// Problem reports a fault, once, and keeps it in the views until it is solved.
	Problem(fault.Key, fault.Event)
	// Solved removes a fault from the views.
	Solved(fault.Key)
}

// Links is what is known of the speeds of links besides PortInfo. Use New.
type Links struct {
	fabric Fabric
	topo   *topo.Builder
	queue  *work.Queue
	rules  *portpolicy.Rules
	ports  []port // by topo.PortID
}

type port struct {
	fdr10     fdr10
	retrained bool // its link was taken down once so that it runs as enabled
	retuned   bool // enabled speeds or widths were changed since the link was trained
}

// fewPorts is how many ports there is room for at least.
const fewPorts = 512

// New returns the links of a fabric without ports. The rules are read at any time.
func New(f Fabric, t *topo.Builder, q *work.Queue, r *portpolicy.Rules) *Links {
	return &Links{fabric: f, topo: t, queue: q, rules: r, ports: make([]port, 0, fewPorts)}
}

// Extend makes room for ports.
func (l *Links) Extend(ports int) { l.ports = topo.ExtendPorts(l.ports, ports) }

// Forget forgets all that is known of a port.
func (l *Links) Forget(p topo.PortID) { l.ports[p] = port{} }

// Retuned records that enabled speeds or widths of a port were changed.
func (l *Links) Retuned(p topo.PortID) { l.ports[p].retuned = true }

// Trained records that the link of a port went down: it is trained with what is enabled now.
func (l *Links) Trained(p topo.PortID) { l.ports[p].retuned = false }

// SlowLink says that a link runs below what both of its ends are enabled for,
// for example on one lane of four: most likely a cable is bad.
type SlowLink struct {
	Place, Peer     ib.Place // its ends; the node GUID and port of a CA or router
	Speed, Expected ib.Speed
	Width, Enabled  ib.LinkWidth
}

// FabricEvent marks an event of the fabric.
func (*SlowLink) FabricEvent() {}

// String implements fmt.Stringer.
func (e *SlowLink) String() string {
	return fmt.Sprintf("the link between %v and %v runs at %v %v, but both ends are enabled for %v %v: check the cable",
		e.Place, e.Peer, e.Width, e.Speed, e.Enabled, e.Expected)
}

// keyOf names the problem of a link by the end that is known by the lower id.
func (l *Links) keyOf(p, q topo.PortID) fault.Key {
	return fault.Key{Kind: fault.LinkSlow, Place: l.topo.LinkEnd(min(p, q))}
}

// Running returns the speed and width at which the link of a port runs.
func (l *Links) Running(p topo.PortID) (ib.Speed, ib.LinkWidth) {
	pi := l.fabric.Info(p)
	speed := ib.Fastest(pi.LinkSpeedActive, pi.LinkSpeedExtActive, ib.LinkSpeedExt2(pi.LinkSpeedExtActive2))
	return orFDR10(speed, l.ports[p].fdr10&fdr10Active != 0), pi.LinkWidthActive
}

// Offered returns the best speed that a port supports and is enabled for.
func (l *Links) Offered(p topo.PortID) ib.Speed {
	pi := l.fabric.Info(p)
	return orFDR10(ib.Fastest(pi.LinkSpeedSupported&pi.LinkSpeedEnabled,
		pi.LinkSpeedExtSupported&ib.LinkSpeedExt(pi.LinkSpeedExtEnabled), ib.LinkSpeedExt2(pi.LinkSpeedExtSupported2&pi.LinkSpeedExtEnabled2)),
		l.ports[p].fdr10&fdr10Enabled != 0)
}

// enabledFor returns the best speed and width that both ends of a link are enabled for.
func (l *Links) enabledFor(p, q topo.PortID) (ib.Speed, ib.LinkWidth) {
	a, b := l.fabric.Info(p), l.fabric.Info(q)
	speed := ib.Fastest(a.LinkSpeedEnabled&b.LinkSpeedEnabled,
		ib.LinkSpeedExt(a.LinkSpeedExtEnabled&b.LinkSpeedExtEnabled),
		ib.LinkSpeedExt2(a.LinkSpeedExtEnabled2&b.LinkSpeedExtEnabled2))
	speed = orFDR10(speed, l.ports[p].fdr10&l.ports[q].fdr10&fdr10Enabled != 0)
	return speed, (a.LinkWidthEnabled & b.LinkWidthEnabled).Widest()
}

// Judge reports a link that runs below what it is enabled for. While a change of ours waits for the next training, this is
// expected.
func (l *Links) Judge(p topo.PortID) {
	q := l.topo.Peer(p)
	if q == topo.None || !l.fabric.IsRead(p) || !l.fabric.IsRead(q) {
		return
	}
	speed, width := l.Running(p)
	if far, lanes := l.Running(q); far < speed || lanes.Lanes() < width.Lanes() {
		speed, width = min(speed, far), lanes
	}
	best, widest := l.enabledFor(p, q)
	slow := speed != 0 && speed < best || width != 0 && width.Lanes() < widest.Lanes()
	if !slow || l.ports[p].retuned || l.ports[q].retuned {
		l.Unlinked(p, q)
		return
	}
	k := l.keyOf(p, q)
	if p > q {
		p, q = q, p
	}
	l.fabric.Problem(k, &SlowLink{Place: l.topo.LinkEnd(p), Peer: l.topo.LinkEnd(q), Speed: speed, Expected: best, Width: width, Enabled: widest})
}

// Unlinked takes that a link is gone or as fast as it should be.
func (l *Links) Unlinked(p, q topo.PortID) { l.fabric.Solved(l.keyOf(p, q)) }

// Train reports whether the link of a port has to be taken down, which happens once: a change of the enabled speed or width
// waits for its training.
func (l *Links) Train(p, q topo.PortID) bool {
	a, b := &l.ports[p], &l.ports[q]
	speed, width := l.Running(p)
	best, widest := l.enabledFor(p, q)
	// A link that runs faster than it may waits for its training also when the
	// node was lost, and with it what we did, because a nearer link was trained.
	waits := !a.retrained && (speed > best || width.Lanes() > widest.Lanes())
	if !a.retuned && !b.retuned && !waits {
		return false
	}
	a.retuned, b.retuned = false, false
	if speed == best && width == widest {
		return false
	}
	a.retrained = true
	return true
}
