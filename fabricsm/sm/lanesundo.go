package sm

import (
	"slices"
	"strings"

	"portcullis/fabricsm/topo"
)

// After quality of service, or routes on several lanes, are switched off, the tables written for them are still in the
// devices: a service level may be dropped, or a lane starve. Only the subnet manager that wrote them can know, also after a
// restart. So a fact records that it wrote them, and they are set to the defaults as soon as nothing else is wanted. Tables
// that no subnet manager of ours wrote are left alone.

// lanesWritten is what of lanes was written to devices and may still be there
// when something else is wanted.
type lanesWritten uint8

const (
	mapsWritten   lanesWritten = 1 << iota // SL-to-VL tables
	pairsWritten                           // those for each pair of ports
	sharesWritten                          // VL arbitration tables
)

// marks returns the words of a fact, by bit.
func (lanesWritten) marks() [3]string { return [...]string{"maps", "pairs", "shares"} }

// undoing reports whether tables are to be the defaults again. Before there are routes that is not known, and it returns
// false.
func (c *Core) undoing() bool {
	return c.lanes.written != 0 && c.lanes.routes != nil && !c.lanes.layered && !c.cfg.QoS.Enabled
}

// shares reports whether arbitration tables are programmed.
func (c *Core) shares() bool {
	return c.cfg.QoS.Enabled || c.lanes.written&sharesWritten != 0 && c.undoing()
}

// wroteLanes notes, before it is done, that tables of a port are written.
func (c *Core) wroteLanes(p topo.PortID, w lanesWritten) {
	if c.ports[p].slvl.want == lanesByPort {
		w |= pairsWritten
	}
	if c.undoing() || c.lanes.written|w == c.lanes.written {
		return
	}
	c.lanes.written |= w
	c.saveLanes()
}

func (c *Core) saveLanes() {
	var mark []byte
	for bit, word := range c.lanes.written.marks() {
		if c.lanes.written&(1<<bit) != 0 {
			mark = append(append(mark, ' '), word...)
		}
	}
	c.save(Fact{Kind: FactLanes, GUID: c.cfg.PortGUID, Mark: strings.TrimSpace(string(mark))})
}

func (c *Core) loadLanes(f *Fact) {
	c.lanes.written = 0
	words := strings.Fields(f.Mark)
	for bit, word := range c.lanes.written.marks() {
		if slices.Contains(words, word) {
			c.lanes.written |= 1 << bit
		}
	}
}

// mixed reports whether tables for different input ports may differ from each other though one is wanted for all.
func (c *Core) mixed(want laneID) bool {
	return want != lanesByPort && (c.lanes.written&pairsWritten != 0 || c.undoing())
}

// undone forgets that tables were written, once a fabric is settled in which no port has them any longer. A device that
// refuses other tables was reported, and is not asked without end.
func (c *Core) undone() {
	l := &c.lanes
	pairs := l.written&pairsWritten != 0 && !(l.layered && c.routing.tables.LanesByPort())
	if !c.undoing() && !pairs {
		return
	}
	for p := range c.ports {
		if id := topo.PortID(p); c.ports[p].seen() && c.hasLanes(id) && (!c.ports[p].slvl.done() || !c.arbDone(id)) {
			return
		}
	}
	if l.written &^= pairsWritten; c.undoing() {
		l.written = 0
	}
	c.saveLanes()
}
