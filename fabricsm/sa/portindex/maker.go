package portindex

import (
	"cmp"
	"slices"
	"strconv"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
)

// Rules are the configuration of end ports.
type Rules struct {
	Policy     *qos.Policy        // nil: there is none
	Partitions map[ib.PKey]string // names of partitions by base P_Key, for the policy
	// Seed is random, so that an attacker cannot choose GUIDs with slow look-ups. It does not change any answer.
	Seed uint64
}

// Empty returns an empty book. Books made after it use these rules.
func Empty(r Rules) *Book {
	m := newMaker(r)
	m.last = &Book{maker: m}
	return m.last
}

// New creates the book of a view. prev is the previous book and may be nil. If prev is the last book with its rules, and
// made by the same goroutine, the cost is proportional to the changes between the views. There is also one look at each
// page of 128 ports, at each LID if there are new tables, and at each link if links between switches changed. After any
// other book it is made from the beginning. Other goroutines may read all books at the same time.
func New(prev *Book, v *sm.View) *Book {
	var m *maker
	switch {
	case prev == nil:
		m = newMaker(Rules{})
	case prev.maker.last != prev:
		m = newMaker(prev.maker.rules)
	default:
		m = prev.maker
	}
	return m.book(v)
}

// maker has the common data of books that are made one after the other. It belongs to one goroutine.
type maker struct {
	rules Rules
	last  *Book
	lids  topo.OwnPages[*EndPort]
	ports topo.OwnPages[*EndPort]
	guids ownGUIDs
	sets  interned

	lidTwins  map[ib.LID][]*EndPort  // that claim the LID of another port
	guidTwins map[ib.GUID][]*EndPort // the same

	v      *sm.View
	shaken []*EndPort // those that differ in this book, as they were and as they are
	keys   []ib.PKey  // room to work in
}

func newMaker(r Rules) *maker {
	return &maker{rules: r, guids: ownGUIDs{seed: r.Seed}, sets: make(interned), lidTwins: make(map[ib.LID][]*EndPort), guidTwins: make(map[ib.GUID][]*EndPort)}
}

func (m *maker) book(v *sm.View) *Book {
	old := m.last
	if old == nil {
		old = &Book{maker: m}
	}
	was := old.View
	if was != nil && (was.GUID != v.GUID || was.LID != v.LID || was.Fabric.NumPorts() > v.Fabric.NumPorts()) {
		return newMaker(m.rules).book(v) // another own port, or another core
	}
	m.v, m.shaken = v, m.shaken[:0]
	m.ports.Grow(v.Fabric.NumPorts())
	var links []topo.PortID
	for p := range changed(v, was) {
		m.look(p)
		links = append(links, p)
	}
	b := &Book{View: v, maker: m, turn: old.turn + 1, after: old.id(), shaken: slices.Clone(m.shaken)}
	b.lids, b.ports, b.guids = m.lids.Snapshot(), m.ports.Snapshot(), m.guids.snapshot()
	b.routers = old.routers
	if slices.ContainsFunc(m.shaken, (*EndPort).isRouter) {
		b.routers = b.findRouters(old.routers, m.shaken)
	}
	b.Routes = old.Routes.after(b, was, links, m.shaken)
	m.last = b
	return b
}

// changed visits the ports that may differ between views: end ports, and switch ports between switches. It may visit one
// twice.
func changed(v, was *sm.View) func(func(topo.PortID) bool) {
	f := v.Fabric
	var old *topo.Fabric
	if was != nil {
		old = was.Fabric
	}
	return func(yield func(topo.PortID) bool) {
		with := func(p topo.PortID) bool {
			if !yield(p) {
				return false
			}
			peer := f.Port(p).Peer
			return peer == topo.None || yield(peer)
		}
		if f != old {
			for p := range f.ChangedPorts(old) {
				if samePort(f, old, p) {
					continue
				}
				if old != nil && int(p) < old.NumPorts() {
					if left := old.Port(p).Peer; left != topo.None && !yield(left) {
						return
					}
				}
				if !with(p) {
					return
				}
			}
		}
		for p := range v.ChangedPKeys(was) {
			if int(p) < f.NumPorts() && !with(p) {
				return
			}
		}
		for p := range v.ChangedAliases(was) {
			if int(p) < f.NumPorts() && !yield(p) {
				return
			}
		}
	}
}

func samePort(f, old *topo.Fabric, p topo.PortID) bool {
	if old == nil || int(p) >= old.NumPorts() || *f.Port(p) != *old.Port(p) {
		return false
	}
	n, o := f.NodeOf(p), old.NodeOf(p)
	return n == o || *n == *o
}

// look compares an end port with its entry in the book.
func (m *maker) look(p topo.PortID) {
	old := m.ports.At(int32(p))
	now := m.describe(p)
	switch {
	case old == nil && now == nil:
		return
	case old == nil:
		m.claim(now)
	case now == nil:
		m.release(old)
		m.sets.drop(old.keys)
	case old.is(now):
		m.sets.drop(now.keys)
		return
	case old.LID == now.LID && old.LMC == now.LMC && old.GUID == now.GUID && slices.Equal(old.Aliases, now.Aliases):
		m.replace(old, now)
		m.sets.drop(old.keys)
	default:
		m.release(old)
		m.claim(now)
		m.sets.drop(old.keys)
	}
	m.ports.Set(int32(p), now)
	for _, e := range []*EndPort{old, now} {
		if e != nil {
			m.shaken = append(m.shaken, e)
		}
	}
}

// is reports whether two end ports are equal.
func (e *EndPort) is(o *EndPort) bool {
	return e.Node == o.Node && e.Type == o.Type && e.GUID == o.GUID && e.LID == o.LID && e.LMC == o.LMC && e.keys == o.keys &&
		e.Home == o.Home && e.HomePort == o.HomePort && e.MTU == o.MTU && e.LinkMTU == o.LinkMTU && e.Rate == o.Rate && e.LinkRate == o.LinkRate &&
		slices.Equal(e.Aliases, o.Aliases) && slices.Equal(e.Groups, o.Groups)
}

// describe returns the current state of an end port, or nil if it is no end port or has no GUID or LID.
func (m *maker) describe(p topo.PortID) *EndPort {
	f := m.v.Fabric
	pt := f.Port(p)
	if pt.GUID == 0 || pt.LID == 0 || !f.IsEndPort(p) {
		return nil
	}
	e := &EndPort{
		Port: p, Node: pt.Node, Type: f.Node(pt.Node).Type, GUID: pt.GUID, Aliases: m.v.Aliases(p), LID: pt.LID, LMC: pt.LMC,
		Home: topo.None, MTU: mtuOf(pt.MTUCap), Rate: rateOf(pt),
	}
	e.LinkMTU, e.LinkRate = e.MTU, e.Rate
	switch peer := f.LinkUp(p); {
	case pt.Num == 0:
		e.Home = pt.Node
	case peer != topo.None:
		e.LinkMTU, e.LinkRate = linkOf(f, p, peer)
		if q := f.Port(peer); f.Node(q.Node).Type == ib.NodeSwitch && q.Num != 0 {
			e.Home, e.HomePort = q.Node, q.Num
		}
	}
	m.keys = inOrder(m.allowed(p, m.keys[:0]))
	e.keys = m.sets.of(m.keys)
	e.PKeys = e.keys.keys
	if m.rules.Policy != nil {
		e.Groups = m.rules.Policy.GroupsOf(m.qosPort(e))
	}
	return e
}

// allowed appends the P_Keys that an end port may use.
func (m *maker) allowed(p topo.PortID, keys []ib.PKey) []ib.PKey {
	f := m.v.Fabric
	pt := f.Port(p)
	own := m.v.PKeyTable(p)
	at := f.SwitchPortOf(p)
	alone := pt.Num == 0 || pt.GUID == m.v.GUID && pt.LID == m.v.LID
	checked := at != topo.None && f.NodeOf(at).PartitionEnforcementCap > 0
	var held []ib.PKey
	if checked {
		held = m.v.PKeyTable(at)
	}
	for _, k := range own {
		switch {
		case !k.Valid():
		case alone, checked && slices.Contains(held, k), !checked && k.Base() == ib.DefaultPKeyLimited:
			keys = append(keys, k)
		}
	}
	return keys
}

// qosPort is an end port as a policy sees it.
func (m *maker) qosPort(e *EndPort) *qos.Port {
	n := m.v.Fabric.Node(e.Node)
	p := &qos.Port{
		GUID: e.GUID, Type: e.Type, Name: n.Description + "/P" + strconv.Itoa(int(m.v.Fabric.Port(e.Port).Num)),
		Self: e.GUID == m.v.GUID && e.LID == m.v.LID, PKeys: e.PKeys,
	}
	for _, k := range e.PKeys {
		if name, ok := m.rules.Partitions[k.Base()]; ok {
			p.Partitions = append(p.Partitions, name)
		}
	}
	return p
}

// claim lets an end port be found.
func (m *maker) claim(e *EndPort) {
	m.lids.Grow(int(e.LID) + 1<<e.LMC)
	for lid := range e.eachLID() {
		has := m.lids.At(int32(lid))
		if has != nil && has.Port < e.Port {
			m.lidTwins[lid] = append(m.lidTwins[lid], e)
			continue
		}
		if has != nil {
			m.lidTwins[lid] = append(m.lidTwins[lid], has)
		}
		m.lids.Set(int32(lid), e)
	}
	for g := range e.eachGUID() {
		has := m.guids.get(g)
		if has != nil && has.before(e, g) {
			m.guidTwins[g] = append(m.guidTwins[g], e)
			continue
		}
		if has != nil {
			m.guidTwins[g] = append(m.guidTwins[g], has)
		}
		m.guids.put(g, e)
	}
}

// release passes the LIDs and GUIDs of an end port on to other ports that claim them too.
func (m *maker) release(e *EndPort) {
	for lid := range e.eachLID() {
		twins := without(m.lidTwins, lid, e)
		if m.lids.At(int32(lid)) == e {
			m.lids.Set(int32(lid), first(m.lidTwins, lid, twins, func(a, b *EndPort) bool { return a.Port < b.Port }))
		}
	}
	for g := range e.eachGUID() {
		twins := without(m.guidTwins, g, e)
		if m.guids.get(g) == e {
			m.guids.put(g, first(m.guidTwins, g, twins, func(a, b *EndPort) bool { return a.before(b, g) }))
		}
	}
}

// replace replaces an end port with its new state.
func (m *maker) replace(old, now *EndPort) {
	for lid := range old.eachLID() {
		if m.lids.At(int32(lid)) == old {
			m.lids.Set(int32(lid), now)
		} else if i := slices.Index(m.lidTwins[lid], old); i >= 0 {
			m.lidTwins[lid][i] = now
		}
	}
	for g := range old.eachGUID() {
		if m.guids.get(g) == old {
			m.guids.put(g, now)
		} else if i := slices.Index(m.guidTwins[g], old); i >= 0 {
			m.guidTwins[g][i] = now
		}
	}
}

// before reports which of two that claim a GUID has it.
func (e *EndPort) before(o *EndPort, g ib.GUID) bool {
	if mine := e.GUID == g; mine != (o.GUID == g) {
		return mine
	}
	return e.Port < o.Port
}

func (e *EndPort) eachLID() func(func(ib.LID) bool) {
	return func(yield func(ib.LID) bool) {
		for i := range 1 << e.LMC {
			if lid := int(e.LID) + i; lid > int(ib.MaxUnicastLID) || !yield(ib.LID(lid)) {
				return
			}
		}
	}
}

// eachGUID visits the GUIDs of an end port, each once.
func (e *EndPort) eachGUID() func(func(ib.GUID) bool) {
	return func(yield func(ib.GUID) bool) {
		if !yield(e.GUID) {
			return
		}
		for i, g := range e.Aliases {
			if g != 0 && g != e.GUID && !slices.Contains(e.Aliases[:i], g) && !yield(g) {
				return
			}
		}
	}
}

// without removes an end port from those that claim a value.
func without[K comparable](twins map[K][]*EndPort, k K, e *EndPort) []*EndPort {
	all := twins[k]
	i := slices.Index(all, e)
	if i < 0 {
		return all
	}
	if all = slices.Delete(all, i, i+1); len(all) == 0 {
		delete(twins, k)
	} else {
		twins[k] = all
	}
	return all
}

// first selects the end port that gets a claimed value, and removes it from the twins; nil if there is none.
func first[K comparable](twins map[K][]*EndPort, k K, all []*EndPort, before func(a, b *EndPort) bool) *EndPort {
	if len(all) == 0 {
		return nil
	}
	best := all[0]
	for _, e := range all[1:] {
		if before(e, best) {
			best = e
		}
	}
	without(twins, k, best)
	return best
}

func (e *EndPort) isRouter() bool { return e.Type == ib.NodeRouter }

// findRouters returns the routers among the previous routers and the changed end ports.
func (b *Book) findRouters(were, shaken []*EndPort) []*EndPort {
	var now []*EndPort
	for _, e := range slices.Concat(were, shaken) {
		if e.isRouter() && b.EndPort(e.Port) == e && !slices.Contains(now, e) {
			now = append(now, e)
		}
	}
	slices.SortFunc(now, func(a, b *EndPort) int { return cmp.Or(cmp.Compare(a.LID, b.LID), cmp.Compare(a.Port, b.Port)) })
	return now
}
