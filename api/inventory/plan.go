package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"portcullis/fabricsm/ib"
)

// Plan is what an import would do to the stored inventory.
type Plan struct {
	Added     []Host   // by id
	Changed   []Change // by id
	Unchanged int      // hosts named by the files that already are so
	NotInFile []string // stored hosts that no file names, left alone; sorted
	Total     int      // hosts afterwards
	LeftOut   int      // cables of an observed fabric to ports that no host has

	Sites    Delta[Site]
	Racks    Delta[Rack]
	Switches Delta[Switch]
	Adapters Delta[Adapter] // of those that are in a host now, Removed
	Trunks   Delta[Trunk]   // of those with an end that the files cable otherwise, Removed

	merge *merge
	decls *Declaration
}

// Change is one stored host that the files change.
type Change struct {
	Before, After Host
	Fields        []string // what changes, one sentence each
	Identity      bool     // EK, GUIDs or cabling change, not labels only
}

// NewPlan compares d with the stored inventory. A host in the files replaces its stored record, but a port that keeps its
// GUID and names no cable keeps the stored one; other objects replace the stored ones with their names. The error is
// Problems and lists every contradiction: an EK, GUID or switch port that two objects would have, a cable to a port that
// no host has, a rack unit with two devices.
func NewPlan(stored *Contents, d *Declaration) (*Plan, error) {
	m := newMerge(stored, d)
	m.cable(d)
	m.checkEquipment()
	m.checkClaims(d)
	if err := m.report.err(); err != nil {
		return nil, err
	}
	return m.plan(d), nil
}

// Without returns the plan for the same files in which the hosts of ids are left as they are stored, or absent. They are in
// none of its lists. The error is Problems: claims of the other hosts to what these still have.
func (p *Plan) Without(ids ...string) (*Plan, error) {
	d := *p.decls
	d.hosts = nil
	for _, h := range p.decls.hosts {
		if !slices.Contains(ids, h.host.ID) {
			d.hosts = append(d.hosts, h)
		}
	}
	m := *p.merge
	m.report, m.next, m.decls, m.held = &report{}, maps.Clone(m.next), maps.Clone(m.decls), map[string]bool{}
	for _, id := range ids {
		m.held[id] = true
		delete(m.decls, id)
		delete(m.next, id)
		if was, known := m.was[id]; known {
			m.next[id] = was
		}
	}
	m.checkEquipment()
	m.checkClaims(&d)
	if err := m.report.err(); err != nil {
		return nil, err
	}
	return m.plan(&d), nil
}

// Contents returns the whole inventory as it is after the import.
func (p *Plan) Contents() *Contents {
	return &Contents{
		Sites: p.merge.sites.all(), Racks: p.merge.racks.all(), Switches: p.merge.switches.all(), Hosts: p.Hosts(),
		Adapters: p.merge.adaptersLeft(), Trunks: p.merge.trunks.all(),
	}
}

// Things lists what the import does to objects that are no hosts: sites, racks, switches, adapters in stock and cables
// between switches, each kind by key.
func (p *Plan) Things() []Thing {
	was, now := p.merge.stored.Locator(), p.Locator()
	return slices.Concat(
		things(&p.Sites, KindSite, was, now), things(&p.Racks, KindRack, was, now), things(&p.Switches, KindSwitch, was, now),
		things(&p.Adapters, KindAdapter, was, now), things(&p.Trunks, KindCable, was, now),
	)
}

// Locator returns the locations as they are after the import.
func (p *Plan) Locator() *Locator { return p.Contents().Locator() }

// Empty reports whether the import changes nothing.
func (p *Plan) Empty() bool { return len(p.Added)+len(p.Changed) == 0 && len(p.Things()) == 0 }

// Hosts returns all hosts as they are after the import, by id.
func (p *Plan) Hosts() []Host {
	out := make([]Host, 0, len(p.merge.next))
	for _, id := range slices.Sorted(maps.Keys(p.merge.next)) {
		out = append(out, p.merge.next[id])
	}
	return out
}

// Cable is a cable that the files declare.
type Cable struct {
	At    string // FILE:LINE
	Host  string
	GUID  ib.GUID // of the host's port
	Place ib.Place
}

// Cables lists the cables that the files declare for the hosts of the plan, by host and port.
func (p *Plan) Cables() []Cable {
	var out []Cable
	for _, h := range p.Hosts() {
		if p.merge.held[h.ID] {
			continue
		}
		for _, port := range h.Ports() {
			if at, declared := p.merge.cableAt[port.GUID]; declared {
				out = append(out, Cable{At: at.String(), Host: h.ID, GUID: port.GUID, Place: port.Cable})
			}
		}
	}
	return out
}

// Replace returns the plan that has h in place of the stored host with its id, or adds it. name says in problems where h is
// from.
func Replace(stored *Contents, h *Host, name string) (*Plan, error) {
	at := spot{name: name}
	decl := hostDecl{at: at, host: h.clone(), ekAt: at}
	for _, a := range h.HCAs {
		hca := hcaDecl{at: at}
		for range a.Ports {
			hca.ports = append(hca.ports, portDecl{at: at, cableAt: at})
		}
		decl.hcas = append(decl.hcas, hca)
	}
	return NewPlan(stored, &Declaration{hosts: []hostDecl{decl}})
}

type merge struct {
	report  *report
	stored  *Contents
	was     map[string]Host
	next    map[string]Host
	named   map[string]bool  // hosts the files name, by themselves or by a cable
	cableAt map[ib.GUID]spot // where the cable of a port is declared
	decls   map[string]hostDecl
	held    map[string]bool // hosts that are left alone though the files have them otherwise

	sites    kept[Site, *Site]
	racks    kept[Rack, *Rack]
	switches kept[Switch, *Switch]
	adapters kept[Adapter, *Adapter]
	trunks   kept[Trunk, *Trunk]
	leftOut  int                 // cables to ports that no host has
	byName   map[string]ib.GUID  // switches
	byGUID   map[ib.GUID]*Switch // switches
}

func newMerge(stored *Contents, d *Declaration) *merge {
	m := &merge{
		report: &report{}, stored: stored, was: map[string]Host{}, next: map[string]Host{}, named: map[string]bool{},
		cableAt: map[ib.GUID]spot{}, decls: map[string]hostDecl{},
	}
	m.equip(d)
	for _, h := range stored.Hosts {
		m.was[h.ID] = h
		m.next[h.ID] = h.clone()
	}
	for _, h := range d.hosts {
		m.replace(h)
	}
	return m
}

// replace puts the declared host in the place of the stored one.
func (m *merge) replace(d hostDecl) {
	kept := map[ib.GUID]Port{}
	before := m.was[d.host.ID]
	for _, p := range before.Ports() {
		kept[p.GUID] = p
	}
	h := d.host.clone()
	for i := range h.HCAs {
		for j := range h.HCAs[i].Ports {
			p := &h.HCAs[i].Ports[j]
			if p.Cable.IsZero() {
				p.Cable, p.Label = kept[p.GUID].Cable, cmp.Or(p.Label, kept[p.GUID].Label)
				continue
			}
			at := d.hcas[i].ports[j]
			m.cableAt[p.GUID] = at.cableAt
			p.Cable = m.resolve(end{at.to, p.Cable}, at.cableAt)
		}
	}
	h.normal()
	m.next[h.ID], m.named[h.ID], m.decls[h.ID] = h, true, d
}

// portAt is where a port is kept: host, and indices of HCA and port.
type portAt struct {
	host     string
	hca, num int
}

// cable enters the cables of the files into next.
func (m *merge) cable(d *Declaration) {
	byGUID, byName := m.ports()
	for _, c := range d.cables {
		at, ok := byGUID[c.guid]
		if c.guid == 0 {
			at, ok = byName[cableDecl{host: c.host, hca: c.hca, port: c.port}]
		}
		switch {
		case !ok && c.optional:
			m.leftOut++
			continue
		case !ok:
			m.noSuchPort(c)
			continue
		}
		p := &m.next[at.host].HCAs[at.hca].Ports[at.num]
		place := m.resolve(end{c.to, c.place}, c.at)
		if first, twice := m.cableAt[p.GUID]; twice && p.Cable != place {
			m.report.add(c.at, "port GUID %v of host %s is cabled to %v here and to %v at %v", p.GUID, at.host, place, p.Cable, first)
			continue
		}
		if p.Cable != place || c.label != "" {
			p.Label = c.label
		}
		p.Cable, m.cableAt[p.GUID], m.named[at.host] = place, c.at, true
	}
}

func (m *merge) noSuchPort(c cableDecl) {
	if c.guid != 0 {
		m.report.add(c.at, "cable: no host of the files or of the inventory has a port with GUID %v", c.guid)
		return
	}
	if _, known := m.next[c.host]; !known {
		m.report.add(c.at, "cable: host %s is neither in the files nor in the inventory", quote(c.host))
		return
	}
	m.report.add(c.at, "cable: host %s has no hca %v with port %d", c.host, c.hca, c.port)
}

// ports finds every port by GUID and by name, that of the first host by id where several
// claim to have it.
func (m *merge) ports() (map[ib.GUID]portAt, map[cableDecl]portAt) {
	byGUID, byName := map[ib.GUID]portAt{}, map[cableDecl]portAt{}
	for _, id := range slices.Backward(slices.Sorted(maps.Keys(m.next))) {
		for i, a := range m.next[id].HCAs {
			for j, p := range a.Ports {
				at := portAt{id, i, j}
				byGUID[p.GUID] = at
				byName[cableDecl{host: id, hca: a.NodeGUID, port: p.Num}] = at
			}
		}
	}
	return byGUID, byName
}

// checkClaims finds what two hosts would have after the import. Stored hosts
// that the files leave alone claim first.
func (m *merge) checkClaims(d *Declaration) {
	l := newLedger()
	m.enterEquipment(l, false)
	ids := slices.Sorted(maps.Keys(m.next))
	for _, id := range ids {
		if _, declared := m.decls[id]; !declared {
			stored := hostDecl{host: m.next[id]}
			l.enterAll(stored.claims(), m.report)
		}
	}
	m.enterEquipment(l, true)
	for _, h := range d.hosts {
		l.enterAll(h.claims(), m.report)
	}
	for i := range d.adapters {
		l.enterAll(d.adapters[i].claims(), m.report)
	}
	m.checkPlaces(l, ids)
}

func (m *merge) checkPlaces(l *ledger, ids []string) {
	owners := guidOwners(m.next)
	// Declared cables come last, so that the blame falls on a line of a file.
	for _, declared := range []bool{false, true} {
		m.enterTrunks(l, declared)
		for _, id := range ids {
			h := m.next[id]
			for _, p := range h.Ports() {
				at, inFile := m.cableAt[p.GUID]
				if p.Cable.IsZero() || inFile != declared {
					continue
				}
				if owner, taken := owners[p.Cable.Switch]; taken {
					m.report.add(at, "cable of host %s port GUID %v: %v is a GUID of host %s, not of a switch", id, p.GUID, p.Cable.Switch, owner)
				}
				m.checkEnd(fmt.Sprintf("cable of host %s port GUID %v", id, p.GUID), p.Cable, at)
				l.enter(placeClaim(id, p, at), m.report)
			}
		}
	}
}

func (m *merge) plan(d *Declaration) *Plan {
	p := &Plan{Total: len(m.next), LeftOut: m.leftOut, merge: m, decls: d}
	where := p.Contents().Locator().and(m.stored)
	m.deltas(p, where)
	for _, id := range slices.Sorted(maps.Keys(m.next)) {
		if m.held[id] {
			continue
		}
		after := m.next[id]
		before, known := m.was[id]
		if !known {
			p.Added = append(p.Added, after)
			continue
		}
		if !m.named[id] {
			p.NotInFile = append(p.NotInFile, id)
			continue
		}
		fields, identity := before.diff(&after, where)
		if len(fields) == 0 {
			p.Unchanged++
			continue
		}
		p.Changed = append(p.Changed, Change{Before: before, After: after, Fields: fields, Identity: identity})
	}
	return p
}
