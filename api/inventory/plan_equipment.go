package inventory

import (
	"fmt"
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
)

// equip merges the declared equipment with the stored one.
func (m *merge) equip(d *Declaration) {
	adapters := make([]decl[Adapter], len(d.adapters))
	for i := range d.adapters {
		adapters[i] = decl[Adapter]{d.adapters[i].places.at, d.adapters[i].adapter}
	}
	m.sites = newKept[Site, *Site](m.stored.Sites, d.sites)
	m.racks = newKept[Rack, *Rack](m.stored.Racks, d.racks)
	m.switches = newKept[Switch, *Switch](m.stored.Switches, d.switches)
	m.adapters = newKept[Adapter, *Adapter](m.stored.Adapters, adapters)
	m.byName, m.byGUID = map[string]ib.GUID{}, map[ib.GUID]*Switch{}
	for id, s := range m.switches.next {
		m.byName[id], m.byGUID[s.GUID] = s.GUID, &s
	}
	m.trunk(d.trunks)
}

// trunk merges cables between switches. A declared one takes the place of every stored one that has an end in common.
func (m *merge) trunk(decls []trunkDecl) {
	trunks := make([]decl[Trunk], 0, len(decls))
	byEnd := map[ib.Place]int{} // declared ones
	for _, c := range decls {
		t := Trunk{A: m.resolve(c.a, c.at), B: m.resolve(c.b, c.at), Label: c.label}
		if t.A.IsZero() || t.B.IsZero() {
			continue // reported
		}
		if t.A == t.B {
			m.report.add(c.at, "cable: both ends are %v: a loopback plug is no cable", t.A)
			continue
		}
		t.normal()
		if i, there := byEnd[t.A]; there && trunks[i].value.B == t.B {
			m.report.add(c.at, "cable: %v to %v is declared twice, first at %v", t.A, t.B, trunks[i].at)
			continue
		}
		byEnd[t.A], byEnd[t.B] = len(trunks), len(trunks)
		trunks = append(trunks, decl[Trunk]{c.at, t})
	}
	m.trunks = newKept[Trunk, *Trunk](m.stored.Trunks, nil)
	for key, t := range m.trunks.was {
		_, a := byEnd[t.A]
		_, b := byEnd[t.B]
		if a || b {
			delete(m.trunks.next, key)
		}
	}
	for i := range trunks {
		t := &trunks[i].value
		if first, there := m.trunks.at[t.Key()]; there {
			m.report.add(trunks[i].at, "cable: %v leads to %v here, and elsewhere at %v", t.A, t.B, first)
			continue
		}
		if t.Label == "" && m.trunks.was[t.Key()].B == t.B {
			t.Label = m.trunks.was[t.Key()].Label
		}
		m.trunks.next[t.Key()], m.trunks.at[t.Key()] = *t, trunks[i].at
	}
}

// resolve returns the switch port that a file names. It reports a name that no switch has, and returns the zero Place.
func (m *merge) resolve(e end, at spot) ib.Place {
	if e.name == "" {
		return e.place
	}
	guid, known := m.byName[e.name]
	if !known {
		m.report.add(at, "cable: no switch %s is in the files or in the inventory", quote(e.name))
		return ib.Place{}
	}
	return ib.Place{Switch: guid, Port: e.place.Port}
}

// checkEquipment reports positions and references that cannot be.
func (m *merge) checkEquipment() {
	for _, id := range slices.Sorted(maps.Keys(m.racks.next)) {
		if site := m.racks.next[id].Site; site != "" {
			if _, known := m.sites.next[site]; !known {
				m.report.add(m.racks.at[id], "rack %s: no site %s is in the files or in the inventory", id, quote(site))
			}
		}
	}
	m.checkUnits()
	for _, key := range slices.Sorted(maps.Keys(m.trunks.next)) {
		t := m.trunks.next[key]
		for _, p := range [2]ib.Place{t.A, t.B} {
			if m.byGUID[p.Switch] == nil {
				m.report.add(m.trunks.at[key], "cable %v to %v: no switch %v is in the files or in the inventory; the cables of a switch that was replaced are declared with it", t.A, t.B, p.Switch)
				continue
			}
			m.checkEnd(fmt.Sprintf("cable %v to %v", t.A, t.B), p, m.trunks.at[key])
		}
	}
	m.checkReplaced()
}

// checkReplaced reports switches that get another GUID while cables of hosts end at the old one.
func (m *merge) checkReplaced() {
	gone := map[ib.GUID]string{}
	for id, was := range m.switches.was {
		if now := m.switches.next[id]; now.GUID != was.GUID && m.byGUID[was.GUID] == nil {
			gone[was.GUID] = id
		}
	}
	if len(gone) == 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(m.next)) {
		h := m.next[id]
		for _, p := range h.Ports() {
			if sw := gone[p.Cable.Switch]; sw != "" {
				m.report.add(m.switches.at[sw], "switch %s gets the GUID %v, and the cable of host %s port GUID %v ends at %v: declare its cables too, or replace the switch with: portcullis topospec rma",
					sw, m.switches.next[sw].GUID, id, p.GUID, p.Cable)
			}
		}
	}
}

// checkEnd reports a cable to a port that a switch of the inventory does not have for cables.
func (m *merge) checkEnd(what string, p ib.Place, at spot) {
	s := m.byGUID[p.Switch]
	switch {
	case s == nil:
	case s.Spare:
		m.report.add(at, "%s: switch %s is in stock: declare it without spare, or correct the cable", what, s.ID)
	case s.LastPort() != 0 && p.Port > s.LastPort():
		m.report.add(at, "%s: switch %s has ports 1 to %d: correct the port %d", what, s.ID, s.LastPort(), p.Port)
	}
}

// standing is a device in a rack.
type standing struct {
	what string
	pos  Position
	at   spot
}

// checkUnits reports devices beyond the top of their racks, and units that two devices take.
func (m *merge) checkUnits() {
	taken := map[string]map[int]*standing{} // by rack and unit
	for _, s := range m.standings() {
		k, known := m.racks.next[s.pos.Rack]
		at := s.at
		if at == (spot{}) {
			at = m.racks.at[s.pos.Rack]
		}
		switch {
		case !known:
			m.report.add(at, "%s: no rack %s is in the files or in the inventory", s.what, quote(s.pos.Rack))
			continue
		case k.Units != 0 && s.pos.top() > int(k.Units), s.pos.top() > MaxUnit:
			m.report.add(at, "%s: it takes units %d to %d of rack %s, which has %d", s.what, s.pos.Unit, s.pos.top(), k.ID, heightOf(k.Units))
		}
		if s.pos.Unit == 0 {
			continue
		}
		if taken[k.ID] == nil {
			taken[k.ID] = map[int]*standing{}
		}
		for u := int(s.pos.Unit); u <= s.pos.top(); u++ {
			first := taken[k.ID][u]
			if first == nil || first.pos.Slot != "" && s.pos.Slot != "" && first.pos.Slot != s.pos.Slot {
				taken[k.ID][u] = s
				continue
			}
			m.report.add(at, "%s: unit %d of rack %s is taken by %s (%s); devices that share a unit have a slot each", s.what, u, k.ID, first.what, placeOf(first.at))
			break
		}
	}
}

func heightOf(n Unit) Unit {
	if n == 0 {
		return MaxUnit
	}
	return n
}

// placeOf returns where something is declared.
func placeOf(at spot) string {
	if at == (spot{}) {
		return "stored inventory"
	}
	return at.String()
}

// standings returns the devices with a unit, and switches with a rack, those of the files last.
func (m *merge) standings() []*standing {
	var stored, declared []*standing
	add := func(s *standing) {
		if s.at == (spot{}) {
			stored = append(stored, s)
		} else {
			declared = append(declared, s)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.switches.next)) {
		if s := m.switches.next[id]; s.Rack != "" {
			add(&standing{"switch " + id, s.Position, m.switches.at[id]})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(m.next)) {
		if h := m.next[id]; h.Unit != 0 {
			add(&standing{"host " + id, h.Position, m.decls[id].at})
		}
	}
	return append(stored, declared...)
}

// enterEquipment enters the GUIDs of switches, of the files or of the inventory only, and of the stored adapters in stock
// that no file names.
func (m *merge) enterEquipment(l *ledger, declared bool) {
	for _, id := range slices.Sorted(maps.Keys(m.switches.next)) {
		s := m.switches.next[id]
		if at, is := m.switches.at[id]; is == declared {
			l.enterAll(switchClaims(&s, at), m.report)
		}
	}
	if declared {
		return
	}
	used := m.usedAdapters()
	for _, key := range slices.Sorted(maps.Keys(m.adapters.next)) {
		if _, is := m.adapters.at[key]; !is && !used[key] {
			a := adapterDecl{adapter: m.adapters.next[key]}
			l.enterAll(a.claims(), m.report)
		}
	}
}

// enterTrunks enters the switch ports of cables between switches, of the files or of the inventory only.
func (m *merge) enterTrunks(l *ledger, declared bool) {
	for _, key := range slices.Sorted(maps.Keys(m.trunks.next)) {
		t := m.trunks.next[key]
		if at, is := m.trunks.at[key]; is == declared {
			l.enterAll(trunkClaims(&t, at), m.report)
		}
	}
}

// usedAdapters returns the node GUIDs of stored adapters in stock that a host of the files has.
func (m *merge) usedAdapters() map[string]bool {
	used := map[string]bool{}
	for id := range m.decls {
		for _, a := range m.next[id].HCAs {
			key := a.NodeGUID.String()
			if _, stock := m.adapters.was[key]; stock {
				used[key] = true
			}
		}
	}
	return used
}

// adaptersLeft returns the adapters that are in stock after the import.
func (m *merge) adaptersLeft() []Adapter {
	used := m.usedAdapters()
	return slices.DeleteFunc(m.adapters.all(), func(a Adapter) bool {
		_, declared := m.adapters.at[a.key()]
		return used[a.key()] && !declared
	})
}

// deltas enters what the import does to equipment.
func (m *merge) deltas(p *Plan, where *Locator) {
	adapters := m.adapters
	adapters.next = map[string]Adapter{}
	for _, a := range m.adaptersLeft() {
		adapters.next[a.key()] = a
	}
	p.Sites, p.Racks, p.Switches = m.sites.delta(where), m.racks.delta(where), m.switches.delta(where)
	p.Adapters, p.Trunks = adapters.delta(where), m.trunks.delta(where)
}
