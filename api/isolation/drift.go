package isolation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/proof"
)

const (
	// mostDrift bounds the rows of a list of drift. A fabric that differs in more has lost its Subnet Manager.
	mostDrift = 10_000
	// mostOfTable bounds the rows of one P_Key table: more than adapters hold. So a device that shows a long table does not have a list of
	// any length made.
	mostOfTable = 128
)

// Drift returns how the tables of ports differ from memberships, sorted by [DriftKey], at most 10,000 rows and 128 P_Keys of a table. If there
// are more, each port has as many of its rows as fit if all have the same share. Infrastructure is left out. That a port is a limited member of the default partition is no drift, whether it is or not.
func (p *Proven) Drift() []v1.Drift {
	p.kept.mu.Lock()
	defer p.kept.mu.Unlock()
	if !p.kept.hasDrift {
		p.kept.drift, p.kept.hasDrift = p.driftAt(nil, func(ib.Place) bool { return true }), true
	}
	return shared(p.kept.drift, mostDrift)
}

// shared returns a copy of at most so many of some rows, which are in the order of ports: the first rows of each port, and of no port fewer
// than of another one that does not have all.
func shared(rows []v1.Drift, most int) []v1.Drift {
	if len(rows) <= most {
		return slices.Clone(rows)
	}
	var ports []int // how many rows each port has
	for i := range rows {
		if i == 0 || rows[i].Place != rows[i-1].Place {
			ports = append(ports, 0)
		}
		ports[len(ports)-1]++
	}
	share, left := 0, most
	slices.Sort(ports)
	for i, n := range ports {
		if share = left / (len(ports) - i); n > share {
			break
		}
		left -= n
	}
	out, of := make([]v1.Drift, 0, most), 0
	for i := range rows {
		if of++; i == 0 || rows[i].Place != rows[i-1].Place {
			of = 1
		}
		if of <= max(share, 1) && len(out) < most {
			out = append(out, rows[i])
		}
	}
	return out
}

// driftAt returns rows and those of the ports at some places, sorted.
func (p *Proven) driftAt(rows []v1.Drift, at func(ib.Place) bool) []v1.Drift {
	d := drifts{of: p, there: p.there, seen: map[ib.Place]bool{}, rows: rows}
	for i := range p.in.ends {
		if e := &p.in.ends[i]; (e.owner.Kind == proof.Tenant || e.owner.Kind == proof.Shared) && at(e.place) {
			d.declared(e)
		}
	}
	d.others(at)
	type keyed struct {
		key string
		row v1.Drift
	}
	all := make([]keyed, len(d.rows))
	for i := range d.rows {
		all[i] = keyed{DriftKey(&d.rows[i]), d.rows[i]}
	}
	slices.SortFunc(all, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
	for i := range all {
		d.rows[i] = all[i].row
	}
	return d.rows
}

// DriftKey names a row in the list of Drift.
func DriftKey(d *v1.Drift) string {
	return fmt.Sprintf("%v/%03d/%v/%s/%s/%v", d.Place.Switch, d.Place.Port, d.GUID, d.In, d.Kind, d.PKey)
}

// drifts collects the rows.
type drifts struct {
	of    *Proven
	there *sightings
	seen  map[ib.Place]bool // switch ports of declared ports that were found
	rows  []v1.Drift
}

func (d *drifts) add(e *end, in, kind string, key ib.PKey, found string) {
	d.rows = append(d.rows, v1.Drift{Kind: kind, In: in, Host: e.host, GUID: e.port, Place: e.place, PKey: key, Found: found})
}

// declared compares the tables of a declared port, and of the switch port in front of it.
func (d *drifts) declared(e *end) {
	f := d.of.found.Fabric
	at, ok := d.there.find(e)
	if !ok {
		if len(d.of.in.granted[seat{e.port, e.place}]) > 0 {
			d.add(e, v1.DriftInAdapter, v1.DriftAbsent, 0, d.there.why(e))
		}
		return
	}
	d.seen[e.place] = true
	port := &f.Devices[at.Device].Ports[at.Port]
	d.table(e, v1.DriftInAdapter, seat{e.port, e.place}, port.PKeys)
	front := port.Cable
	if !has(f, front) || f.Devices[front.Device].Type != ib.NodeSwitch {
		d.add(e, v1.DriftInSwitch, v1.DriftUnread, 0, "the switch port in front of it is not known")
		return
	}
	sw := &f.Devices[front.Device].Ports[front.Port]
	d.table(e, v1.DriftInSwitch, seat{at: e.place}, sw.PKeys)
	switch c := sw.Check; {
	case c.How != proof.WasRead:
		d.add(e, v1.DriftInSwitch, v1.DriftUnread, 0, "PortInfo")
	case !c.Value.Inbound || !c.Value.Outbound:
		d.add(e, v1.DriftInSwitch, v1.DriftNotEnforced, 0, fmt.Sprintf("inbound %s, outbound %s", onOff(c.Value.Inbound), onOff(c.Value.Outbound)))
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// table compares a P_Key table with the memberships of the port.
func (d *drifts) table(e *end, in string, at seat, t proof.Read[[]ib.PKey]) {
	if t.How != proof.WasRead {
		d.add(e, in, v1.DriftUnread, 0, "P_Key table")
		return
	}
	want := d.of.in.granted[seat{e.port, e.place}]
	before := len(d.rows)
	defer func() { d.rows = d.rows[:min(len(d.rows), before+mostOfTable)] }()
	for _, k := range want {
		switch {
		case slices.Contains(t.Value, k):
		case slices.Contains(t.Value, k^other):
			d.add(e, in, v1.DriftMembership, k, (k ^ other).String())
		default:
			d.add(e, in, v1.DriftMissing, k, "")
		}
	}
	for _, k := range d.unwanted(t.Value) {
		if slices.Contains(want, k) {
			continue
		}
		m := member{at, k.Base()}
		switch {
		case d.of.in.leaving[m]:
			d.add(e, in, v1.DriftLeaving, k, k.String())
		case !d.of.in.members[m]: // of an adopted membership it is none
			d.add(e, in, v1.DriftStray, k, k.String())
		}
	}
}

// other is the bit by which the memberships of a partition differ.
const other = ib.DefaultPKeyFull ^ ib.DefaultPKeyLimited

// unwanted returns the P_Keys of a table that need a membership, each once.
func (d *drifts) unwanted(table []ib.PKey) []ib.PKey {
	var out []ib.PKey
	for _, k := range table {
		if k.Valid() && k != ib.DefaultPKeyLimited {
			out = append(out, k)
		}
	}
	return sortedKeys(out)
}

// others finds the P_Keys of tenants at ports where nothing is declared, or where what is declared was not found.
func (d *drifts) others(some func(ib.Place) bool) {
	for at, g := range d.of.ghostly() {
		if d.seen[at] || !some(at) {
			continue
		}
		e := end{port: g.guid, place: at}
		if i, ok := d.of.in.byPlace[at]; ok && i >= 0 {
			e.host = d.of.in.ends[i].host
		}
		for _, k := range g.adapter[:min(len(g.adapter), mostOfTable)] {
			d.add(&e, v1.DriftInAdapter, v1.DriftStray, k, k.String())
		}
		for _, k := range g.front[:min(len(g.front), mostOfTable)] {
			d.add(&e, v1.DriftInSwitch, v1.DriftStray, k, k.String())
		}
	}
}

// KeepSince sets since when each row is known: since it was in an earlier list, or since now. A list that is not the first has those of
// before by key.
func KeepSince(rows, before []v1.Drift, now *v1.IsolationBounds) {
	for i, j := 0, 0; i < len(rows); i++ {
		rows[i].Since = now.Newest()
		key := DriftKey(&rows[i])
		for j < len(before) && cmp.Less(DriftKey(&before[j]), key) {
			j++
		}
		if j < len(before) && DriftKey(&before[j]) == key {
			rows[i].Since = before[j].Since
		}
	}
}
