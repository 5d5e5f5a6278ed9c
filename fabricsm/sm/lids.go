package sm

import (
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// lidSpace holds the owner of each unicast LID. A GUID keeps its LIDs while it is away, until there are no others left, and
// then too as keepsLID says.
type lidSpace struct {
	owner  []ib.GUID // by LID
	byGUID map[ib.GUID]ib.LID
	lmc    map[ib.GUID]ib.LMC     // of those that own more than one
	next   [8]ib.LID              // by LMC: no range of LIDs below it is free
	spare  ib.LID                 // where the search for LIDs of absent GUIDs goes on
	open   []topo.PortID          // see undecided, perhaps some of them twice
	spoken bool                   // a switch has said what it forwards, or that it will not
	fresh  []uint64               // bits by LID: given since the core began
	guests map[ib.Place][]ib.GUID // that got new LIDs at a place, the latest maxGuests
	away   map[ib.GUID]time.Time  // when owners were seen last that are not seen now, and were since the core began
	short  bool                   // an end port got no LID, because every one was kept
}

// maxGuests is how many GUIDs without a grant keep LIDs that they got at one
// place: a host may come back under ever new GUIDs.
const maxGuests = 16

func newLIDSpace() lidSpace {
	s := lidSpace{byGUID: make(map[ib.GUID]ib.LID), lmc: make(map[ib.GUID]ib.LMC), guests: make(map[ib.Place][]ib.GUID), away: make(map[ib.GUID]time.Time), spare: ib.MinUnicastLID}
	for lmc := range s.next {
		s.next[lmc] = max(ib.MinUnicastLID, ib.LID(1)<<lmc)
	}
	return s
}

func (s *lidSpace) at(l ib.LID) ib.GUID {
	if int(l) < len(s.owner) {
		return s.owner[l]
	}
	return 0
}

func (s *lidSpace) set(l ib.LID, g ib.GUID) {
	for int(l) >= len(s.owner) {
		s.owner = append(s.owner, 0)
	}
	s.owner[l] = g
}

// load takes a saved fact, or what a GUID is to have. Those that contradict it are
// dropped.
func (s *lidSpace) load(g ib.GUID, l ib.LID) { s.loadRange(g, l, 0) }

func (s *lidSpace) loadRange(g ib.GUID, l ib.LID, lmc ib.LMC) {
	s.release(g)
	if !g.Valid() || !ranges(l, lmc) {
		return
	}
	for i := range ib.LID(1) << lmc {
		if before := s.at(l + i); before != 0 {
			s.release(before)
		}
	}
	s.own(g, l, lmc)
}

// ranges reports whether an LMC makes a range of unicast LIDs of a base LID.
func ranges(l ib.LID, lmc ib.LMC) bool {
	size := 1 << lmc
	return lmc <= maxLMC && l.IsUnicast() && int(l)%size == 0 && int(l)+size-1 <= int(ib.MaxUnicastLID)
}

const maxLMC = 7

func (s *lidSpace) own(g ib.GUID, l ib.LID, lmc ib.LMC) {
	for i := range ib.LID(1) << lmc {
		s.set(l+i, g)
	}
	s.byGUID[g] = l
	if lmc != 0 {
		s.lmc[g] = lmc
	}
}

func (s *lidSpace) release(g ib.GUID) {
	l, ok := s.byGUID[g]
	if !ok {
		return
	}
	for i := range ib.LID(1) << s.lmc[g] {
		s.set(l+i, 0)
	}
	for lmc := range s.next {
		s.next[lmc] = min(s.next[lmc], max(l&^(1<<lmc-1), 1<<lmc))
	}
	delete(s.byGUID, g)
	delete(s.lmc, g)
	delete(s.away, g)
}

// free reports whether an aligned range of LIDs has no owner other than one GUID.
func (s *lidSpace) free(l ib.LID, lmc ib.LMC, but ib.GUID) bool {
	if !ranges(l, lmc) {
		return false
	}
	for i := range ib.LID(1) << lmc {
		if g := s.at(l + i); g != 0 && g != but {
			return false
		}
	}
	return true
}

// isNew reports whether a LID was assigned since the core began.
func (s *lidSpace) isNew(l ib.LID) bool {
	return int(l)/64 < len(s.fresh) && s.fresh[l/64]>>(l%64)&1 != 0
}

// setNew records that a LID was assigned now.
func (s *lidSpace) setNew(l ib.LID) {
	for int(l)/64 >= len(s.fresh) {
		s.fresh = append(s.fresh, 0)
	}
	s.fresh[l/64] |= 1 << (l % 64)
}

func (s *lidSpace) leave(pt *port) { pt.lid = 0 }

// pick returns LIDs for a GUID: those it had, if they are as many as wanted. Otherwise it takes those around the base LID
// it had or was found with if they are free, or the first that are. fresh says that this is new and must be saved. taken
// are the GUIDs that lost their LIDs because no others were left; keeps reports those that do not.
func (s *lidSpace) pick(g ib.GUID, found ib.LID, lmc ib.LMC, keeps func(ib.GUID) bool) (l ib.LID, fresh bool, taken []ib.GUID) {
	had, ok := s.byGUID[g]
	if ok && s.lmc[g] == lmc {
		return had, false, nil
	}
	switch {
	case ok && s.free(had, lmc, g):
		l = had
	case s.free(found, lmc, g):
		l = found
	default:
		l = s.first(lmc, g)
	}
	if l == 0 {
		if l, taken = s.takeSpare(lmc, g, keeps); l == 0 {
			return 0, false, nil
		}
	}
	s.release(g)
	s.own(g, l, lmc)
	return l, true, taken
}

// first returns the first free range of LIDs, 0 if there is none.
func (s *lidSpace) first(lmc ib.LMC, g ib.GUID) ib.LID {
	size := ib.LID(1) << lmc
	for l := s.next[lmc]; ranges(l, lmc); l += size {
		if s.free(l, lmc, g) {
			s.next[lmc] = l
			return l
		}
	}
	s.next[lmc] = ib.MaxUnicastLID + 1
	return 0
}

// takeSpare takes a range of LIDs whose owners do not keep them.
func (s *lidSpace) takeSpare(lmc ib.LMC, but ib.GUID, keeps func(ib.GUID) bool) (ib.LID, []ib.GUID) {
	size := ib.LID(1) << lmc
	for range int(ib.MaxUnicastLID)/int(size) + 1 {
		l := max(s.spare&^(size-1), size)
		if s.spare = l + size; s.spare > ib.MaxUnicastLID {
			s.spare = ib.MinUnicastLID
		}
		var taken []ib.GUID
		ok := ranges(l, lmc)
		for i := range size {
			g := s.at(l + i)
			switch {
			case g == 0 || g == but:
			case keeps(g):
				ok = false
			case len(taken) == 0 || taken[len(taken)-1] != g:
				taken = append(taken, g)
			}
		}
		if !ok {
			continue
		}
		for _, g := range taken {
			s.release(g)
		}
		return l, taken
	}
	return 0, nil
}

// lmcOf returns the LMC that an end port is to have: switches need one LID, unless they have an enhanced port 0 and are to
// have more.
func (c *Core) lmcOf(p topo.PortID) ib.LMC {
	pt := &c.ports[p]
	switch {
	case pt.num != 0:
		return c.cfg.LMC
	case !c.cfg.Ports.LMCPort0 || c.cfg.LMC == 0:
		return 0
	case pt.lid != 0:
		return c.lids.lmc[c.topo.GUIDOf(p)] // what it got before its SwitchInfo was known stays
	case c.enhanced(p):
		return c.cfg.LMC
	default:
		return 0
	}
}

// settleLID assigns an end port its LID, once this SM is master, and reports where the port is.
func (c *Core) settleLID(p topo.PortID) {
	pt := &c.ports[p]
	guid := c.topo.GUIDOf(p)
	if guid == 0 || c.byPort[guid] != p {
		return
	}
	if pt.lid == 0 && c.writing() && pt.seen() {
		c.assign(p, guid)
	}
	c.tellPlace(p, guid)
}

func (c *Core) assign(p topo.PortID, guid ib.GUID) {
	pt := &c.ports[p]
	if c.undecided(p, guid) {
		c.lids.open = append(c.lids.open, p)
		return
	}
	c.newGuest(guid, c.topo.PlaceOf(p))
	l, fresh, taken := c.lids.pick(guid, c.foundLID(p), c.lmcOf(p), c.keepsLID)
	for _, g := range taken {
		c.save(Fact{Kind: FactLID, GUID: g})
	}
	if l == 0 {
		c.lids.short = true
		return
	}
	if fresh {
		c.lids.setNew(l)
		c.save(Fact{Kind: FactLID, GUID: guid, LID: l, LMC: c.lmcOf(p)})
		c.tellRefusedLID(guid, pt.info.LID, l)
	}
	pt.lid = l
	c.copyPort(p)
	c.moved()
	c.q.MarkPort(work.Set, p)
	if p == c.own() {
		c.touchAll()
	}
	c.needRoute(p)
}

// undecided reports whether a port shows a LID which it may keep if its switch forwards it there, and the switch has not
// reported yet whether it does.
func (c *Core) undecided(p topo.PortID, guid ib.GUID) bool {
	l, sp := c.ports[p].info.LID, c.forwards(p)
	if _, had := c.lids.byGUID[guid]; had || sp == topo.None || !c.lids.free(l, c.lmcOf(p), guid) {
		return false
	}
	id := c.ports[sp].node
	n := &c.nodes[id]
	if !n.alive || n.silent {
		return false
	}
	if !n.infoKnown {
		return c.failures[work.OnNode(work.Switch, id)].rounds == 0
	}
	b := int(l) / lidsPerBlock
	return n.lft.read.Has(b) && !n.lft.refused.Has(b) && c.failures[work.OnNode(work.LFT, id)].rounds == 0
}

// settleOpen assigns LIDs to the waiting ports whose switches have answered, or will not.
func (c *Core) settleOpen() {
	if !c.lids.spoken {
		return
	}
	open := c.lids.open
	c.lids.open, c.lids.spoken = nil, false
	for _, p := range open {
		c.settleLID(p) // which notes again what is open still
	}
}

// newGuest notes a GUID that gets a LID at a place for the first time. The LIDs
// of one that was there long before, is away and has no grant become free.
func (c *Core) newGuest(guid ib.GUID, pl ib.Place) {
	if _, had := c.lids.byGUID[guid]; had || pl.IsZero() {
		return
	}
	list := append(c.lids.guests[pl], guid)
	if len(list) > maxGuests {
		old := list[0]
		list = slices.Delete(list, 0, 1)
		if _, here := c.byPort[old]; !here && len(c.members.byGUID[old]) == 0 && c.lids.byGUID[old] != 0 {
			c.lids.release(old)
			c.save(Fact{Kind: FactLID, GUID: old})
		}
	}
	c.lids.guests[pl] = list
}

// foundLID returns the LID that a port is found with, 0 if its switch does not forward it there. Otherwise a host that
// shows an arbitrary LID would make all switches hold tables up to the highest.
func (c *Core) foundLID(p topo.PortID) ib.LID {
	l, sp := c.ports[p].info.LID, c.forwards(p)
	if sp == topo.None {
		return l
	}
	content := c.nodes[c.ports[sp].node].lft.have(int(l) / lidsPerBlock)
	if content == nil || content[int(l)%lidsPerBlock] != c.ports[sp].num {
		return 0
	}
	return l
}

// forwards returns the port of a switch by which packets reach an end port, None if there is no switch before it.
func (c *Core) forwards(p topo.PortID) topo.PortID {
	if c.ports[p].num == 0 {
		return p
	}
	if sp := c.topo.Peer(p); sp != topo.None && c.topo.IsExternal(sp) {
		return sp
	}
	return topo.None
}

func (c *Core) tellPlace(p topo.PortID, guid ib.GUID) {
	pt := &c.ports[p]
	if pt.num == 0 || pt.lid == 0 || pt.placed || c.topo.Peer(p) == topo.None {
		return
	}
	pt.placed, pt.place = true, c.topo.PlaceOf(p)
	c.groups.Reseat(guid)
	c.aliases.Seat(guid)
	c.event(&PortPlaced{GUID: guid, Place: pt.place, LID: pt.lid, NodeGUID: c.topo.NodeGUID(pt.node)})
	c.needRoute(p)
	c.judge(guid)
}

// leave records that an end port is no longer where it was.
func (c *Core) leave(p topo.PortID) {
	pt := &c.ports[p]
	guid := c.topo.GUIDOf(p)
	if pt.placed {
		pt.placed = false
		c.event(&PortGone{GUID: guid, Place: pt.place})
		c.aliases.Seat(guid)
		c.groups.Reseat(guid)
	}
	c.aliases.AllotRefused()
	c.forgetSM(guid)
	c.absent(guid)
}
