package sm

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// lidSpace says who owns each unicast LID. A GUID keeps its LID while it is
// away, until there are no others left.
type lidSpace struct {
	owner  []ib.GUID // by LID
	byGUID map[ib.GUID]ib.LID
	next   ib.LID // no LID below it is free
	spare  ib.LID // where the search for a LID of an absent GUID goes on
}

func newLIDSpace() lidSpace {
	return lidSpace{byGUID: make(map[ib.GUID]ib.LID), next: ib.MinUnicastLID, spare: ib.MinUnicastLID}
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

// load takes a saved fact. Those that contradict an earlier one are dropped.
func (s *lidSpace) load(g ib.GUID, l ib.LID) {
	if old, ok := s.byGUID[g]; ok {
		s.set(old, 0)
		delete(s.byGUID, g)
	}
	if !g.Valid() || !l.IsUnicast() {
		return
	}
	if before := s.at(l); before != 0 {
		delete(s.byGUID, before)
	}
	s.set(l, g)
	s.byGUID[g] = l
}

func (s *lidSpace) leave(pt *port) { pt.lid = 0 }

// pick gives a GUID the LID it had, the one it was found with if that is free,
// or the first that is free. fresh says that this is new and must be saved.
// taken is the GUID that lost the LID because no other was left.
func (s *lidSpace) pick(g ib.GUID, found ib.LID, present func(ib.GUID) bool) (l ib.LID, fresh bool, taken ib.GUID) {
	if l, ok := s.byGUID[g]; ok {
		return l, false, 0
	}
	l = found
	if !l.IsUnicast() || s.at(l) != 0 {
		for l = s.next; l <= ib.MaxUnicastLID && s.at(l) != 0; l++ {
		}
		s.next = l
	}
	if l > ib.MaxUnicastLID {
		if l, taken = s.takeSpare(present); l == 0 {
			return 0, false, 0
		}
	}
	s.set(l, g)
	s.byGUID[g] = l
	return l, true, taken
}

// takeSpare takes the LID of a GUID that is not present.
func (s *lidSpace) takeSpare(present func(ib.GUID) bool) (ib.LID, ib.GUID) {
	for range int(ib.MaxUnicastLID) {
		l := s.spare
		if s.spare++; s.spare > ib.MaxUnicastLID {
			s.spare = ib.MinUnicastLID
		}
		if g := s.at(l); !present(g) {
			delete(s.byGUID, g)
			return l, g
		}
	}
	return 0, 0
}

// settleLID gives an end port its LID, once this SM is master, and tells where
// the port is.
func (c *Core) settleLID(p topo.PortID) {
	pt := &c.ports[p]
	guid := c.guidOf(p)
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
	l, fresh, taken := c.lids.pick(guid, pt.info.LID, func(g ib.GUID) bool { _, ok := c.byPort[g]; return ok })
	if taken != 0 {
		c.save(Fact{Kind: FactLID, GUID: taken})
	}
	if l == 0 {
		return
	}
	if fresh {
		c.save(Fact{Kind: FactLID, GUID: guid, LID: l})
		c.tellRefusedLID(guid, pt.info.LID, l)
	}
	pt.lid = l
	c.copyPort(p)
	c.moved()
	c.markPort(clsSet, p)
	if p == c.own() {
		c.touchAll()
	}
	c.needRoute(p)
}

func (c *Core) tellPlace(p topo.PortID, guid ib.GUID) {
	pt := &c.ports[p]
	if pt.num == 0 || pt.lid == 0 || pt.placed || c.peer(p) == topo.None {
		return
	}
	pt.placed, pt.place = true, c.placeOf(p)
	c.reseat(guid)
	c.event(&PortPlaced{GUID: guid, Place: pt.place, LID: pt.lid, NodeGUID: c.nodeGUID(pt.node)})
	c.needRoute(p)
	c.judge(guid)
}

// leave takes that an end port is no longer where it was.
func (c *Core) leave(p topo.PortID) {
	pt := &c.ports[p]
	guid := c.guidOf(p)
	if pt.placed {
		pt.placed = false
		c.event(&PortGone{GUID: guid, Place: pt.place})
		c.reseat(guid)
	}
	c.forgetSM(guid)
	c.absent(guid)
}
