package sm

import (
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Which virtual lane a service level uses is programmed only if it matters: when
// routes, or multicast, are dealt to several lanes, so that no credit loop
// closes, or when quality of service is on. Otherwise everything is on SL 0,
// which power-on tables lead to VL 0.

// laneID names what the SL-to-VL tables of a port are made for, so that a change
// is seen.
type laneID uint8

const (
	lanesUnknown laneID = iota // nothing was decided
	lanesAsFound               // they are left alone
	lanesByPort                // what the routes say for each pair of ports
	firstLanes                 // and above: Core.lanes.tables, one for all input ports
)

// lanes is which virtual lanes are wanted.
type lanes struct {
	qos     *[4]qos.Table // by qos.Kind, if that is on; views share it
	layered bool          // the routes need several lanes
	base    [16]ib.VL     // layered: for links between switches
	extra   ib.SL         // service level of multicast, if it has a lane of its own
	own     ib.VL         // that lane, 0: none
	tables  [][16]ib.VL   // that ports were given
	written lanesWritten  // to devices, and not undone since

	routes *route.Tables // for which that was decided
	ground *mcast.Ground

	closed  bool          // forwarding is not written before the lanes are
	next    topo.PortID   // those before it have their lanes
	waiting []topo.NodeID // switches whose forwarding waits
}

func newLanes(cfg *Config) (l lanes) {
	l.qos = new([4]qos.Table)
	for k := range l.qos {
		l.qos[k] = cfg.QoS.Table(qos.Kind(k))
	}
	return l
}

// maxLaneTables bounds the tables that are kept apart; common configurations need ten.
const maxLaneTables = 200

// hasLanes reports whether a port has SL-to-VL tables: a port with a cable has, and enhanced switch port 0 with quality of
// service.
func (c *Core) hasLanes(p topo.PortID) bool {
	if pt := &c.ports[p]; pt.num == 0 {
		return (c.cfg.QoS.Enabled || c.undoing()) && c.topo.IsEndPort(p) && c.nodes[pt.node].info.EnhancedPort0
	}
	return c.topo.Peer(p) != topo.None
}

// mapsLanes reports whether the SL-to-VL tables of a port's device can be programmed.
func (c *Core) mapsLanes(p topo.PortID) bool {
	if c.topo.IsExternal(p) {
		p = c.topo.Node(c.ports[p].node).FirstPort
	}
	return c.cfg.SLtoVL != SLtoVLOff && c.ports[p].info.CapabilityMask.Has(mad.IsSLMappingSupported)
}

// needsLanes reports whether SL-to-VL tables are programmed.
func (c *Core) needsLanes() bool { return c.lanes.layered || c.cfg.QoS.Enabled || c.undoing() }

// lanesFor returns the lanes for which the tables of a port have to be made.
func (c *Core) lanesFor(p topo.PortID) laneID {
	l := &c.lanes
	switch {
	case !c.needsLanes() || !c.mapsLanes(p):
		return lanesAsFound
	case l.layered && c.routing.tables.LanesByPort() && c.topo.IsExternal(p):
		return lanesByPort
	}
	want := c.lanesOf(p, 0)
	i := slices.Index(l.tables, want)
	if i < 0 {
		if len(l.tables) == maxLaneTables {
			l.tables = nil
			c.relaneAll()
		}
		i = len(l.tables)
		l.tables = append(l.tables, want)
	}
	return firstLanes + laneID(i)
}

// lanesOf returns the lane for each service level of packets that leave by a port and came in by another of its switch.
// Only links between switches can be part of a credit loop: to and from hosts the present lanes are enough for all levels.
func (c *Core) lanesOf(p topo.PortID, in ib.PortNum) [16]ib.VL {
	l := &c.lanes
	pt := &c.ports[p]
	if !l.layered {
		return l.qos[kindOf(&c.topo, p)].Lanes(c.vlsOf(p))
	}
	want := l.base
	if c.topo.IsExternal(p) && c.routing.tables.LanesByPort() {
		want = c.routing.tables.SwitchLanes(pt.node, in, pt.num)
	}
	if l.own != 0 {
		want[l.extra] = l.own
	}
	if pt.num != 0 && c.topo.IsExternal(p) && !c.topo.IsEndPort(c.topo.Peer(p)) {
		return want
	}
	foldLanes(&want, c.vlsOf(p))
	return want
}

// foldLanes has each lane that a port does not have stood for by one that it has.
func foldLanes(want *[16]ib.VL, vls ib.VLCap) {
	n := max(1, vls.Count())
	for sl, vl := range want {
		if vl != ib.VL15 {
			want[sl] = ib.VL(int(vl) % n)
		}
	}
}

// vlsOf returns the virtual lanes that a port is to have.
func (c *Core) vlsOf(p topo.PortID) ib.VLCap {
	w, _ := c.wantInfo(p)
	return w.OperationalVLs
}

// kindOf returns the kind of a port for quality of service.
func kindOf(t *topo.Builder, p topo.PortID) qos.Kind {
	tp := t.Port(p)
	return kindOfPort(t.Node(tp.Node).Type, tp.Num)
}

func kindOfPort(node ib.NodeType, num ib.PortNum) qos.Kind {
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

// relane takes the lanes that routes and multicast need now. Where tables have
// to change, new forwarding waits for them, as far as devices answer.
func (c *Core) relane(ground *mcast.Ground) {
	l := &c.lanes
	before := *l
	was, now := l.routes, c.routing.tables
	l.routes, l.ground = now, ground
	l.layered, l.base, l.extra, l.own = now.Layers() > 1, now.SLtoVL(), 0, 0
	if gr := l.ground; gr != nil && gr.VL != 0 {
		l.extra, l.own = gr.SL, gr.VL
		if !l.layered {
			l.layered, l.base = true, oneLane()
		}
	}
	changed := l.layered != before.layered || l.base != before.base || l.extra != before.extra || l.own != before.own
	switch {
	case was.LanesByPort() || now.LanesByPort():
		c.relanePorts(was, changed)
	case changed || was == nil && c.undoing():
		c.relaneAll()
	}
	if l.closed = l.closed || l.layered && was != now; l.closed {
		l.next = 0
	}
	if l.layered || before.layered || was == nil {
		c.renewSMSL()
	}
}

// oneLane returns the tables of routes on one lane, when other traffic has another.
func oneLane() (vl [16]ib.VL) {
	for sl := 1; sl < len(vl); sl++ {
		vl[sl] = ib.VL15
	}
	return vl
}

// relaneAll looks at the SL-to-VL tables of all ports again.
func (c *Core) relaneAll() {
	for p := range c.ports {
		if id := topo.PortID(p); c.ports[p].seen() && c.hasLanes(id) {
			c.anewSLtoVL(id)
			c.q.MarkPort(work.SLtoVL, id)
			if c.undoing() {
				c.q.MarkPort(work.VLArb, id)
			}
		}
	}
}

// relanePorts looks again at the SL-to-VL tables of those switch ports for which
// the routes say something else than before.
func (c *Core) relanePorts(was *route.Tables, all bool) {
	now := c.routing.tables
	for p := range c.ports {
		id := topo.PortID(p)
		pt := &c.ports[p]
		if !pt.seen() || !c.hasLanes(id) {
			continue
		}
		differs := all || !c.topo.IsExternal(id)
		for in := ib.PortNum(0); !differs && in <= ib.PortNum(c.topo.Node(pt.node).NumPorts); in++ {
			differs = was.SwitchLanes(pt.node, in, pt.num) != now.SwitchLanes(pt.node, in, pt.num)
		}
		if differs {
			c.anewSLtoVL(id)
			c.q.MarkPort(work.SLtoVL, id)
		}
	}
}

// afterLanes reports whether the forwarding of a switch must not be written yet.
func (c *Core) afterLanes(id topo.NodeID) bool {
	if c.lanes.closed {
		c.lanes.waiting = append(c.lanes.waiting, id)
	}
	return c.lanes.closed
}

// openLanes lets forwarding be written once all links between switches have
// their lanes, but those of switches that do not answer or refuse. It reports
// whether there is work now.
func (c *Core) openLanes() bool {
	l := &c.lanes
	if !l.closed {
		return false
	}
	for ; int(l.next) < len(c.ports); l.next++ {
		pt := &c.ports[l.next]
		peer := topo.PortID(topo.None)
		if c.nodes[pt.node].alive && !c.nodes[pt.node].silent && c.topo.IsExternal(l.next) {
			peer = c.topo.Peer(l.next)
		}
		if peer != topo.None && c.topo.IsExternal(peer) && pt.seen() && !pt.slvl.done() && c.failures[work.OnPort(work.SLtoVL, l.next)].rounds == 0 {
			return false
		}
	}
	l.closed = false
	for _, id := range l.waiting {
		if c.nodes[id].alive {
			c.q.MarkNode(work.LFT, id)
		}
	}
	waited := len(l.waiting) > 0
	l.waiting = nil
	return waited
}

// laneCap returns the virtual lanes that routes may use on a port: those that it has, as far as policy allows and the
// device keeps them. It returns one lane if its tables cannot be programmed.
func (c *Core) laneCap(p topo.PortID) ib.VLCap {
	pt := &c.ports[p]
	most := pt.info.VLCap
	if pt.num == 0 || !c.topo.IsExternal(p) {
		return most
	}
	if _, vls := c.rules.Maxima(p); vls != 0 {
		most = min(most, vls)
	}
	if c.nodes[pt.node].notKept&FieldOperationalVLs != 0 {
		most = min(most, pt.info.OperationalVLs)
	}
	if p0 := &c.ports[c.topo.Node(pt.node).FirstPort]; c.cfg.SLtoVL == SLtoVLOff || p0.known && !c.mapsLanes(p) {
		most = min(most, 1)
	}
	return most
}

// recapLanes looks at the lanes of a switch's ports again when its port 0 says
// whether they can be programmed.
func (c *Core) recapLanes(id topo.NodeID) {
	c.topo.EachExternal(id, func(p topo.PortID) {
		if c.ports[p].seen() {
			c.copyPort(p)
			if c.needsLanes() {
				c.q.MarkPort(work.SLtoVL, p)
			}
		}
	})
}

// smSL returns the service level that an end port is to use towards this SM: that of the routes between them. Before there
// are routes it stays as it was found.
func (c *Core) smSL(p topo.PortID) ib.SL {
	switch {
	case c.routing.tables == nil:
		return c.ports[p].info.MasterSMSL
	case c.routing.tables.Layers() == 1:
		return c.cfg.Ports.MasterSMSL
	}
	return c.routing.tables.SL(c.ports[p].lid, c.smLID())
}

// renewSMSL writes the service level towards this SM where it changed.
func (c *Core) renewSMSL() {
	for p := range c.ports {
		pt := &c.ports[p]
		if id := topo.PortID(p); pt.lid != 0 && c.topo.IsEndPort(id) && pt.info.MasterSMSL != c.smSL(id) {
			c.q.MarkPort(work.Set, id)
		}
	}
}
