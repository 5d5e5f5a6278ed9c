package reader

import (
	"cmp"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
)

// Lanes is an SLtoVL table: the virtual lane, by service level, of packets that leave by a port. It can have a packet dropped, and lets
// none pass, so package proof does not count on it.
type Lanes struct {
	Port  proof.Place
	In    ib.PortNum // of a switch: the port by which the packets came in, 0: they are of the switch itself
	Table proof.Read[mad.SLtoVLMappingTable]
	Cause Cause // why it was not read
}

// mod returns the attribute modifier by which a table is asked for.
func (l *Lanes) mod(t ib.NodeType) uint32 {
	if t != ib.NodeSwitch {
		return 0
	}
	return mad.SLtoVLMod(l.In, l.Port.Port)
}

// hasLanes reports whether a port has an SLtoVL table, by its PortInfo: one with a single data lane need not have any.
func hasLanes(info []byte) bool { return decode[mad.PortInfo](info).VLCap.Count() != 1 }

// endLanes asks for the table of an adapter's port, whose PortInfo was read.
func (r *Reader) endLanes(q *ask) {
	if !hasLanes(q.data[:]) {
		return
	}
	r.devices[q.device].ports[q.port].lanes = true
	r.add(ask{name: name{q.device, q.port, mad.AttrSLtoVLMappingTable, 0}, route: q.route, at: q.at})
}

// switchLanes asks for tables of a switch, all of whose PortInfos are settled: for each port that may be up one, of packets that came in by
// the port before it that may be up. A switch has one for each pair of ports, which are more than all its other tables together.
func (r *Reader) switchLanes(d int) {
	in := ib.PortNum(0)
	for i := range r.devices[d].ports[1:] {
		num := ib.PortNum(i + 1)
		info, ok := r.read(d, num, mad.AttrPortInfo, mad.PortInfoMod(num, 0))
		if ok && portFacts(info).state == ib.PortDown {
			continue
		}
		if !ok || hasLanes(info) {
			p := &r.devices[d].ports[num]
			p.lanes, p.lanesIn = true, in
			r.of(d, num, mad.AttrSLtoVLMappingTable, mad.SLtoVLMod(in, num))
		}
		in = num
	}
}

// takeLanes takes the table of a port from the earlier reading, also that the device refused it: one that has none is
// not asked for each of them after each change.
func (r *Reader) takeLanes(q *ask) bool {
	was := r.o.Earlier.Found
	at := proof.Place{Device: r.known[r.devices[q.device].info.NodeGUID], Port: q.port}
	i, ok := slices.BinarySearchFunc(was.Lanes, at, func(l Lanes, at proof.Place) int {
		return cmp.Or(cmp.Compare(l.Port.Device, at.Device), cmp.Compare(l.Port.Port, at.Port))
	})
	if !ok {
		return false
	}
	l := &was.Lanes[i]
	if l.Table.How != proof.WasRead && l.Cause != Refused || l.mod(r.devices[q.device].info.NodeType) != q.mod {
		return false
	}
	q.how, q.cause, q.taken = l.Table.How, l.Cause, true
	mad.MustEncode(q.data[:], &l.Table.Value)
	return true
}

// lanes adds the SLtoVL table of a port, if it was asked for one.
func (b *builder) lanes(at proof.Place, where string) {
	p := &b.devices[at.Device].ports[at.Port]
	if !p.lanes {
		return
	}
	l := Lanes{Port: at, In: p.lanesIn}
	how, why := b.blocks(at, mad.AttrSLtoVLMappingTable, []uint32{l.mod(b.devices[at.Device].info.NodeType)}, func(_ int, data []byte) {
		l.Table.Value = decode[mad.SLtoVLMappingTable](data)
	})
	l.Table.How, l.Cause = how, why
	b.note(how, at, where, whatLanes, why)
	b.found.Lanes = append(b.found.Lanes, l)
}
