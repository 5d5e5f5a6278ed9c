package sm

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// MKeyConfig is about the M_Keys of devices: one for each end port, that of port
// 0 for a switch. Without a Source devices get none, and none is shown.
type MKeyConfig struct {
	// Source makes the keys of devices that have none yet.
	Source keys.Source
	// Protection is the protection level that devices get. At 2, the default, a device answers no request without the key.
	// 1 hides the key only. 3 is as 2.
	Protection uint8
	// Lease is how many seconds protection outlives a violation that this SM does
	// not react to; 0, the default, is for ever. See ib-sm.md 6.1. With one, every
	// end port is audited at least twice in that time.
	Lease uint16
	// Places says which places of devices count as verified; no other gets a key.
	Places KeyPlaces
	// Rotation says how keys change from time to time; a zero Period: they do not.
	Rotation keys.RotationConfig
	// AttachedTo is the node GUID of the switch that PortGUID is cabled to, as an operator
	// says it; 0: it is known from the topology or from what was saved, or not at all.
	// Only the M_Key of that switch is shown at the end of this cable.
	AttachedTo ib.GUID
	// Import is what another subnet manager left, nil for nothing.
	Import *KeyImport
	// Release has all keys given back, as ReleaseKeys does.
	Release bool
}

// KeyPlaces says what proves that a device is where it belongs.
type KeyPlaces uint8

const (
	// PlacesDeclared: the declared topology has the device there. Without one,
	// no device gets a key.
	PlacesDeclared KeyPlaces = iota
	// PlacesSeen: the first place at which a device is seen is its place. It trusts the first device that shows a GUID.
	PlacesSeen
	// PlacesAuto: declared while enforcement is asked for, and seen otherwise, so that a topology that is only observed
	// locks no device out.
	PlacesAuto
)

func (p KeyPlaces) String() string {
	switch p {
	case PlacesSeen:
		return "seen"
	case PlacesAuto:
		return "auto"
	default:
		return "declared"
	}
}

// keyPlaces returns what proves now that a device is where it belongs: declared or seen.
func (c *Core) keyPlaces() KeyPlaces {
	switch {
	case c.cfg.MKey.Places != PlacesAuto:
		return c.cfg.MKey.Places
	case c.law.WantsEnforcement():
		return PlacesDeclared
	default:
		return PlacesSeen
	}
}

func (m *MKeyConfig) on() bool { return m.Source != nil }

func (k *configChecker) mkey(m *MKeyConfig) {
	k.atMost("M_Key protection level", int(m.Protection), 3)
	if err := m.Rotation.Check(); err != nil {
		k.wrong("M_Key: %v", err)
	}
	if m.Places > PlacesAuto {
		k.wrong("M_Key places %d: want declared, seen or auto", uint8(m.Places))
	}
}

// mkeys is what is known of the M_Keys of devices.
type mkeys struct {
	book                *keys.Book
	behind              map[ib.Place]ib.GUID       // end port behind a port of a switch that is cabled to another, as saved
	switches            map[ib.GUID]bool           // that are, or were, behind one
	waiting             map[topo.PortID][]work.Ref // work on a device whose key is not known yet, by the port that has the key
	shown               showing
	rotation            rotation
	releasing, released bool                 // all keys are given back; and were, as far as they can
	exposed             map[ib.GUID]exposure // devices whose key another party has
	lent                map[ib.GUID]keyLease // whose key a tool has
	retired             []ib.GUID            // for views: whose keys were destroyed last
	states              keyStates            // for views
}

func newMKeys() mkeys {
	book, err := keys.NewBook(nil)
	if err != nil {
		panic("sm: " + err.Error())
	}
	return mkeys{
		book: book, behind: make(map[ib.Place]ib.GUID), switches: make(map[ib.GUID]bool),
		waiting: make(map[topo.PortID][]work.Ref), shown: newShowing(), exposed: make(map[ib.GUID]exposure),
		lent: make(map[ib.GUID]keyLease),
	}
}

// loadKeys takes the records that were saved. The caller has to check them. If one makes no sense, no key is used, and
// devices that have one do not answer.
func (c *Core) loadKeys(facts []Fact) {
	ours := slices.DeleteFunc(KeyRecords(facts), func(r keys.Record) bool { return r.Kind != keys.MKey })
	book, err := keys.NewBook(ours)
	if err != nil {
		c.cfg.MKey.Source = nil
		c.event(&KeyProblem{Reason: err.Error()})
		return
	}
	c.mkeys.book = book
	c.mkeys.releasing = c.mkeys.releasing || c.cfg.MKey.Release
}

// keyPort returns the port whose M_Key guards the attribute that a piece of work requests from a node.
func (c *Core) keyPort(x work.Ref, n topo.NodeID) topo.PortID {
	if tn := c.topo.Node(n); tn.Type == ib.NodeSwitch {
		return tn.FirstPort
	}
	if c.ownEntry(x) != topo.None {
		return x.Port()
	}
	if up := c.nodes[n].up; up != topo.None && c.topo.Peer(up) != topo.None {
		return c.topo.Peer(up)
	}
	return c.rootPort
}

// ring returns the known keys of an end port, nil for none.
func (c *Core) ring(p topo.PortID) *keys.Ring {
	if g := c.topo.GUIDOf(p); g != 0 {
		return c.mkeys.book.Ring(keys.MKey, g)
	}
	return nil
}

// keyedAt returns the place of an end port as its key is bound to it. It returns none for a switch, which may be entered by
// many ports. Our own port is always where it is.
func (c *Core) keyedAt(p topo.PortID) ib.Place {
	if c.ports[p].num == 0 {
		return ib.Place{}
	}
	if p == c.own() {
		if r := c.ring(p); r != nil {
			rec := r.Record()
			return rec.Place
		}
		return ib.Place{}
	}
	return c.topo.PlaceOf(p)
}

// keyedHere reports whether an end port was assigned its key at a place.
func (c *Core) keyedHere(guid ib.GUID, place ib.Place) bool {
	r := c.mkeys.book.Ring(keys.MKey, guid)
	if r == nil {
		return c.importedAt(guid, place)
	}
	rec := r.Record()
	return rec.Place == place && !place.IsZero()
}

// verified reports whether an end port is where it belongs.
func (c *Core) verified(p topo.PortID) bool {
	if p == c.own() {
		return true
	}
	if c.ports[p].num != 0 {
		if peer := c.topo.Peer(p); c.ofSwitch(c.topo.GUIDOf(p)) || peer != topo.None && !c.wayKnown(c.ports[peer].node) {
			return false
		}
	} else if !c.wayKnown(c.ports[p].node) {
		return false
	}
	return (c.keyPlaces() == PlacesSeen || c.law.IsDeclared(p)) && !c.disputed(p)
}

// disputed reports whether another port contests the place, or identity, of an end port.
func (c *Core) disputed(p topo.PortID) bool {
	pt := &c.ports[p]
	if pt.challenger != topo.None || c.dark(p) {
		return true
	}
	peer := c.topo.Peer(p)
	return peer != topo.None && (c.ports[peer].fenced || c.ports[peer].challenger != topo.None || c.dark(peer))
}

// holds reports whether a piece of work has to wait until it is known which key its target has. Only the work that finds
// that out may go ahead. It also returns the port that has the key.
func (c *Core) holds(x work.Ref, n topo.NodeID) (topo.PortID, bool) {
	p := c.keyPort(x, n)
	r := c.ring(p)
	if r == nil && c.cfg.MKey.Import != nil {
		r = c.takeOverKey(p)
	}
	if r == nil || x.Class == work.Info && x.Port() == p {
		return p, false
	}
	if c.keyOnWay(p) && (x.Class != work.Set || x.Port() != p) {
		return p, true
	}
	if _, ok := r.Now(c.keyedAt(p), c.verified(p)); ok {
		return p, false
	}
	switch r.Next(c.keyedAt(p), c.verified(p)).Do {
	case keys.Ask, keys.Stranded, keys.Foreign:
		return p, true
	case keys.Program:
		return p, x.Class != work.Set || x.Port() != p
	default:
		return p, false
	}
}

// keyOnWay reports whether a request that is out sets the key of a device: a later request might show the wrong key.
func (c *Core) keyOnWay(p topo.PortID) bool { return c.ports[p].setKey && c.q.IsAsked(work.Set, p) }

// awaitKey puts work off until the key of its target is known.
func (c *Core) awaitKey(x work.Ref, p topo.PortID) {
	c.mkeys.waiting[p] = append(c.mkeys.waiting[p], x)
	if r := c.ring(p); r.Next(c.keyedAt(p), c.verified(p)).Do == keys.Ask {
		c.q.MarkPort(work.Info, p)
	} else {
		c.q.MarkPort(work.Set, p)
	}
}

// opened lets the work go on that waited for the key of a device.
func (c *Core) opened(p topo.PortID) {
	waiting := c.mkeys.waiting[p]
	if len(waiting) == 0 {
		return
	}
	delete(c.mkeys.waiting, p)
	c.q.PutBackAll(waiting)
}

// headerKey returns the M_Key that a request shows: the target's own, or none.
func (c *Core) headerKey(x work.Ref, n topo.NodeID) ib.MKey {
	if !c.cfg.MKey.on() {
		return ib.MKey{}
	}
	if n == topo.None {
		return c.probeKey(x)
	}
	p := c.keyPort(x, n)
	r := c.ring(p)
	if r == nil {
		return ib.MKey{}
	}
	k, ok := r.Now(c.keyedAt(p), c.verified(p))
	if !ok {
		k = r.Next(c.keyedAt(p), c.verified(p)).Header
	}
	if !k.IsZero() {
		c.showsKey(p)
	}
	return k.M()
}

// probeKey returns the M_Key for a NodeInfo request to an unknown device. It tries the keys of the devices whose place that
// is, one after the other, and no others.
func (c *Core) probeKey(x work.Ref) ib.MKey {
	cands := c.candidates(x)
	if len(cands) == 0 {
		return ib.MKey{}
	}
	k := cands[c.failures[x].tries%len(cands)]
	if x.Class == work.Probe {
		c.showsTo(x.Port(), k.guid)
	}
	return k.key
}

type candidate struct {
	guid ib.GUID
	key  ib.MKey
}

// candidates are the keys to try on what a probe may meet.
func (c *Core) candidates(x work.Ref) (out []candidate) {
	add := func(guid ib.GUID) {
		r := c.mkeys.book.Ring(keys.MKey, guid)
		if r == nil {
			if key, ok := c.cfg.MKey.Import.key(guid); ok {
				out = append(out, candidate{guid, key.M()})
			}
			return
		}
		rec := r.Record()
		for _, h := range rec.Try() {
			out = append(out, candidate{guid, h.Key.M()})
		}
	}
	if x.Class == work.Root {
		add(c.cfg.PortGUID)
		return out
	}
	p := x.Port()
	if !c.wayKnown(c.ports[p].node) {
		return nil
	}
	if peer := c.topo.Peer(p); peer != topo.None {
		// A device that got its key here is asked under it although another device claims its identity elsewhere. Otherwise
		// it could not answer, and its silence would prove the other one right.
		guid, place := c.topo.GUIDOf(c.topo.EntryPort(peer)), c.topo.LinkEnd(p)
		if c.verified(c.topo.EntryPort(peer)) || c.keyedHere(guid, place) || guid != 0 && c.mkeys.behind[place] == guid {
			add(guid)
		}
		if len(out) > 0 {
			return out
		}
	}
	if c.keyPlaces() != PlacesSeen && !c.law.Expects(p) || c.dark(p) {
		return nil
	}
	if c.topo.Peer(p) != topo.None {
		return c.imported(p) // it reported its identity, and fell silent before its key was recorded
	}
	if c.ownCable(p) {
		if a := c.neighbour(); a.guid != 0 {
			add(a.guid)
			return out
		}
		return c.imported(p)
	}
	place := c.topo.LinkEnd(p)
	for _, guid := range c.mkeys.book.At(keys.MKey, place) {
		if c.keyBelongs(p, guid) {
			add(guid)
		}
	}
	if guid, ok := c.mkeys.behind[place]; ok {
		add(guid)
	}
	return append(out, c.imported(p)...)
}

// probeTries is how often a probe is tried: each key has its turn.
func (c *Core) probeTries(x work.Ref) int {
	if !c.cfg.MKey.on() {
		return c.cfg.Tries
	}
	return c.cfg.Tries * max(1, len(c.candidates(x)))
}

// linkedKey remembers which switch is behind a port, so that it can be asked
// under its key after a restart.
func (c *Core) linkedKey(p topo.PortID) {
	if !c.cfg.MKey.on() || !c.probes(p) || c.topo.Peer(p) == topo.None || !c.topo.IsExternal(c.topo.Peer(p)) {
		return
	}
	if c.ownCable(p) {
		c.bindOwn()
	}
	guid, place := c.topo.GUIDOf(c.topo.EntryPort(c.topo.Peer(p))), c.topo.LinkEnd(p)
	if guid == 0 || c.mkeys.behind[place] == guid || !c.provenSwitch(c.topo.Peer(p)) || c.topo.IsExternal(p) && !c.provenSwitch(p) {
		return
	}
	c.saveSwitchPort(c.topo.Peer(p))
	c.mkeys.seenBehind(place, guid)
	c.save(Fact{Kind: FactBehind, GUID: place.Switch, Port: place.Port, Behind: guid})
}

// linkedKeys remembers behind which ports a switch is that answers under its key.
func (c *Core) linkedKeys(p topo.PortID) {
	if c.ports[p].num == 0 {
		c.topo.EachExternal(c.ports[p].node, func(q topo.PortID) {
			if peer := c.topo.Peer(q); peer != topo.None {
				c.linkedKey(peer)
				c.linkedKey(q)
			}
		})
	}
}

// provenSwitch reports whether a port is of a switch that answers under its key, or never had one, and its cable is as
// declared.
func (c *Core) provenSwitch(p topo.PortID) bool {
	if c.law.IsOn() && c.topo.IsExternal(p) && !c.law.IsLawful(c.topo.PlaceOf(p)) && c.keyPlaces() == PlacesDeclared {
		return false
	}
	port0 := c.topo.EntryPort(p)
	switch guid := c.topo.GUIDOf(port0); {
	case guid == 0:
		return false // it is not known yet which switch it says it is
	case !c.keptKey(guid):
		return true
	}
	k, ok := c.ring(port0).Now(c.keyedAt(port0), c.verified(port0))
	return ok && !k.IsZero()
}

// toldKey handles the answer to a probe: if keys were shown to a device other than their owners, those owners get new ones.
// The device that answers may have been silent to the first of the keys.
func (c *Core) toldKey(p topo.PortID, ni *mad.NodeInfo) {
	shown := c.mkeys.shown.to[p]
	delete(c.mkeys.shown.to, p)
	for _, guid := range shown {
		if guid != ni.PortGUID && c.mkeys.book.Ring(keys.MKey, guid) != nil && !c.mkeys.shown.told[guid] {
			c.mkeys.shown.told[guid] = true
			c.event(&KeyExposed{GUID: guid, Place: c.topo.PlaceOf(p), To: ni.PortGUID})
			c.expose(guid, exposedKey)
		}
	}
}

// keepAlive is the longest time between two audits of a port that a lease allows.
func (m *MKeyConfig) keepAlive() time.Duration { return time.Duration(m.Lease) * time.Second / 2 }
