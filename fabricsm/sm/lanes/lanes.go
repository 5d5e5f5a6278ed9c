// Package lanes decides which virtual lane each service level uses on each port, and finds out which SL-to-VL and VL
// arbitration tables have to be read and written for that.
//
// Tables are programmed only where they matter: when routes, or multicast, are dealt to several lanes, so that no credit
// loop closes, or when quality of service is on. Otherwise everything is on SL 0, which power-on tables lead to VL 0.
//
// It has no clock and sends nothing. The core says what there is, and asks for the next step of a port.
package lanes

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Port is what Lanes have to know of a port.
type Port struct {
	Info      *mad.PortInfo // as it was read last, or is assumed
	Node      topo.NodeID
	Num       ib.PortNum
	IsRead    bool // Info was read in this life of the link
	IsAssumed bool // Info is assumed: the answer to the first Set shows the real one
	IsFresh   bool // the link came up without configuration, so tables are written without reading them
}

// isSeen reports whether enough is known of a port to write to it.
func (p *Port) isSeen() bool { return p.IsRead || p.IsAssumed }

// Node is what Lanes have to know of a node.
type Node struct {
	Info     *mad.SwitchInfo // as it was read last; zero if it was not
	IsRead   bool            // Info was read
	IsAlive  bool
	IsSilent bool
	IsReset  bool // it is a switch that came without configuration
}

// Fabric is what Lanes ask of the core.
type Fabric interface {
	// Port describes a port.
	Port(topo.PortID) Port
	// Node describes a node.
	Node(topo.NodeID) Node
	// VLs returns the virtual lanes that a port is to have. The port has a cable, or is port 0 of a switch.
	VLs(topo.PortID) ib.VLCap
	// MayWrite reports whether devices may be changed.
	MayWrite() bool
	// IsPaused reports whether work waits for a pause to pass, as the device does not answer, or refuses.
	IsPaused(work.Ref) bool
	// Refuse reports an answer that is an error, or not what was asked for, and tries again after a pause.
	Refuse(r work.Request, reason string)
	// Show has the next view show a port again.
	Show(topo.PortID)
	// AuditLater has AuditMaps asked for a port in the background.
	AuditLater(topo.PortID)
	// Save keeps which tables were written, as Load takes it.
	Save(written string)
}

// Lanes is which virtual lanes are wanted, and how far ports have them. Use New.
type Lanes struct {
	fabric  Fabric
	topo    *topo.Builder
	queue   *work.Queue
	options *qos.Options
	off     bool // all SL-to-VL tables are left alone

	maps   []mapState    // by topo.PortID: how far SL-to-VL tables are right
	shares []*shareState // by topo.PortID: how far arbitration tables are; nil, or short, where nothing was wanted

	// wanted
	kinds   *[4]qos.Table // by qos.Kind, if quality of service is on; views share it
	layered bool          // the routes need several lanes
	base    [16]ib.VL     // layered: for links between switches
	extra   ib.SL         // service level of multicast, if it has a lane of its own
	own     ib.VL         // that lane, 0: none
	tables  [][16]ib.VL   // that ports were given
	written written       // to devices, and not undone since

	routes *route.Tables // for which that was decided
	ground *mcast.Ground

	closed  bool          // forwarding is not written before the lanes are
	next    topo.PortID   // those before it have their lanes
	waiting []topo.NodeID // switches whose forwarding waits
}

// Options says what is programmed.
type Options struct {
	QoS *qos.Options // read at any time; see Renew
	Off bool         // all SL-to-VL tables are left alone
}

// fewPorts is how many ports there is room for at least.
const fewPorts = 512

// New returns the lanes of a fabric without ports.
func New(f Fabric, t *topo.Builder, q *work.Queue, o Options) *Lanes {
	l := &Lanes{fabric: f, topo: t, queue: q, options: o.QoS, off: o.Off, maps: make([]mapState, 0, fewPorts)}
	l.readOptions()
	return l
}

func (l *Lanes) readOptions() {
	l.kinds = new([4]qos.Table)
	for k := range l.kinds {
		l.kinds[k] = l.options.Table(qos.Kind(k))
	}
}

// Renew programs lanes and their shares again after the options of quality of service changed, or has them undone.
func (l *Lanes) Renew() {
	l.readOptions()
	l.tables = nil
	clear(l.shares)
	l.relaneAll()
}

// Extend makes room for ports.
func (l *Lanes) Extend(ports int) { l.maps = topo.ExtendPorts(l.maps, ports) }

// Forget forgets all that is known of a port.
func (l *Lanes) Forget(p topo.PortID) {
	l.maps[p] = mapState{}
	l.forgetShares(p)
}

// Doubt has the tables of a port read again.
func (l *Lanes) Doubt(p topo.PortID) {
	l.reread(p)
	l.forgetShares(p)
}

// DoubtReset has the tables of a port read again whose device was reset, perhaps while they were written.
func (l *Lanes) DoubtReset(p topo.PortID) {
	l.Doubt(p)
	l.maps[p].all = true
}

// DoubtForeign has the tables of a port read again that another subnet manager may have written.
func (l *Lanes) DoubtForeign(p topo.PortID) {
	l.Doubt(p)
	l.maps[p].all = false
}

// Touch looks again at all tables of a port.
func (l *Lanes) Touch(p topo.PortID) {
	l.queue.MarkPort(work.SLtoVL, p)
	if l.programsShares() {
		l.queue.MarkPort(work.VLArb, p)
	}
}

// TouchMaps looks again at the SL-to-VL tables of a port, if such tables are programmed.
func (l *Lanes) TouchMaps(p topo.PortID) {
	if l.programsMaps() {
		l.queue.MarkPort(work.SLtoVL, p)
	}
}

// IsDone reports whether the tables of a port need no work.
func (l *Lanes) IsDone(p topo.PortID) bool { return l.maps[p].done() && l.sharesDone(p) }

// has reports whether a port has SL-to-VL tables: a port with a cable has, and enhanced switch port 0 with quality of
// service.
func (l *Lanes) has(p topo.PortID) bool {
	if pt := l.fabric.Port(p); pt.Num == 0 {
		return (l.options.Enabled || l.undoes()) && l.topo.IsEndPort(p) && l.fabric.Node(pt.Node).Info.EnhancedPort0
	}
	return l.topo.Peer(p) != topo.None
}

// CanMap reports whether the SL-to-VL tables of a port's device can be programmed.
func (l *Lanes) CanMap(p topo.PortID) bool {
	if l.topo.IsExternal(p) {
		p = l.topo.Node(l.fabric.Port(p).Node).FirstPort
	}
	return !l.off && l.fabric.Port(p).Info.CapabilityMask.Has(mad.IsSLMappingSupported)
}

// programsMaps reports whether SL-to-VL tables are programmed.
func (l *Lanes) programsMaps() bool { return l.layered || l.options.Enabled || l.undoes() }

// kindOf returns the kind of a port for quality of service.
func (l *Lanes) kindOf(p topo.PortID) qos.Kind {
	tp := l.topo.Port(p)
	return KindOf(l.topo.Node(tp.Node).Type, tp.Num)
}

// KindOf returns the kind of a port of a node for quality of service.
func KindOf(node ib.NodeType, num ib.PortNum) qos.Kind {
	switch {
	case node == ib.NodeSwitch && num != 0:
		return qos.SwitchExternal
	case num == 0:
		return qos.SwitchPort0
	case node == ib.NodeRouter:
		return qos.Router
	default:
		return qos.CA
	}
}

// Step is the next thing to do about a table of a port.
type Step struct {
	Method mad.Method // 0: nothing
	Attr   mad.AttrID
	Mod    uint32
	Audit  bool // part of the background audit
	lanes  mad.SLtoVLMappingTable
	half   mad.VLArbitration
}

// Encode writes the table of a Set.
func (s *Step) Encode(data []byte) {
	if s.Attr == mad.AttrVLArbitration {
		mad.MustEncode(data, &s.half)
		return
	}
	mad.MustEncode(data, &s.lanes)
}

// Next returns the next step of a piece of work on a port: of class work.SLtoVL, or work.VLArb.
func (l *Lanes) Next(x work.Ref) Step {
	if x.Class == work.VLArb {
		return l.nextShares(x.Port())
	}
	return l.nextMap(x.Port())
}

// Answer takes the answer to a step.
func (l *Lanes) Answer(r *work.Request, m *mad.MAD, status mad.Status) {
	if r.Ref.Class == work.VLArb {
		l.gotShares(r, m, status)
		return
	}
	l.gotMap(r, m, status)
}
