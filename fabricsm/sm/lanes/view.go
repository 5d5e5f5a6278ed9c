package lanes

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/topo"
)

// View is what readers need to say which virtual lanes ports were given. It is immutable.
type View struct {
	tables [][16]ib.VL
	own    ib.VL
	extra  ib.SL
	kinds  *[4]qos.Table
	maps   bool // SL-to-VL tables are programmed
	shares bool // arbitration tables are
}

// View returns what holds of all ports now.
func (l *Lanes) View() View {
	return View{tables: l.tables, own: l.own, extra: l.extra, kinds: l.kinds, maps: l.programsMaps(), shares: l.programsShares()}
}

// Shown is what readers see of the tables of a port.
type Shown struct {
	vls    ib.VLCap // lanes that the next two are made for
	maps   laneID   // content of its SL-to-VL tables; lanesUnknown, lanesAsFound: that is not known
	halves uint8    // halves of its arbitration tables that are as wanted, a bit for each mad.VLArbHalf
}

// Show returns what is to be shown of a port.
func (l *Lanes) Show(p topo.PortID) (s Shown) {
	if m := &l.maps[p]; m.done() && !m.refused && m.want >= lanesAsFound && l.has(p) {
		s.maps = m.want
	}
	if a := l.sharesOf(p); a != nil && l.arbitrates(p) {
		s.halves = a.right &^ a.refused
	}
	if s.maps > lanesAsFound || s.halves != 0 {
		s.vls = l.fabric.VLs(p)
	}
	return s
}

// Map returns the virtual lane for each service level of packets that leave by a port, of which s is shown, and came in by
// another of its switch. It is known only for ports whose tables are programmed, once they are right.
func (v *View) Map(s Shown, f *topo.Fabric, routes *route.Tables, out topo.PortID, in ib.PortNum) (vl [16]ib.VL, known bool) {
	switch {
	case s.maps <= lanesAsFound:
		return vl, false
	case s.maps != lanesByPort:
		return v.tables[s.maps-firstLanes], true
	}
	p := f.Port(out)
	want := routes.SwitchLanes(p.Node, in, p.Num)
	if v.own != 0 {
		want[v.extra] = v.own
	}
	if p.Peer == topo.None || f.IsEndPort(p.Peer) {
		fold(&want, s.vls)
	}
	return want, true
}

// LeavesMap reports whether the SL-to-VL tables of a port are neither read nor written: nothing needs lanes, the port has no
// link, or its device cannot be programmed.
func (v *View) LeavesMap(s Shown, isLinked bool) bool {
	return s.maps <= lanesAsFound && (!v.maps || s.maps == lanesAsFound || !isLinked)
}

// Half returns half of an arbitration table of a port of some kind, of which s is shown. It is known only for ports whose
// tables are programmed, once they are right.
func (v *View) Half(s Shown, kind qos.Kind, room *mad.PortInfo, half mad.VLArbHalf) (t mad.VLArbitration, known bool) {
	if !s.knows(half) {
		return t, false
	}
	n, from := roomOf(room, half)
	if n <= from {
		return t, false
	}
	return halfOf(&v.kinds[kind], half, n, from, s.vls), true
}

// LeavesHalf reports half of an arbitration table that is neither read nor written, or that the port has no room for.
func (v *View) LeavesHalf(s Shown, isLinked bool, room *mad.PortInfo, half mad.VLArbHalf) bool {
	n, from := roomOf(room, half)
	return n <= from || !s.knows(half) && (!v.shares || room.VLCap <= 1 || !isLinked)
}

// knows reports whether half of an arbitration table is as it is wanted.
func (s Shown) knows(half mad.VLArbHalf) bool { return s.halves&(1<<half) != 0 }
