package sm

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// AliasesSet replaces the alias GUIDs of the ports it names. Others keep theirs.
type AliasesSet struct{ Ports []AliasGUIDs }

// AliasGUIDs assigns GUIDs to an end port in addition to its own, for virtual functions. They take effect only while the
// port is seen at exactly that place.
type AliasGUIDs struct {
	GUID  ib.GUID  // port GUID
	Place ib.Place // switch port it must be cabled to
	// Aliases are the entries of GUIDInfo from 1 on, 0 for one that is unused. An empty list means that the port is to have
	// none: the aliases that it holds are removed.
	Aliases []ib.GUID
}

func (*AliasesSet) input() {}

// AliasesApplied says that a port was read back and holds its alias GUIDs, and
// no others.
type AliasesApplied struct {
	GUID    ib.GUID
	Place   ib.Place
	Aliases []ib.GUID // entries from 1 on, those that were refused as 0
}

// AliasRefused says why an alias GUID is not given, or, without Alias, none of a
// port's. It is tried again by itself when the reason goes away.
type AliasRefused struct {
	GUID   ib.GUID // port GUID
	Alias  ib.GUID
	Reason string
}

func (*AliasesApplied) FabricEvent() {}
func (*AliasRefused) FabricEvent()   {}

// String implements fmt.Stringer.
func (e *AliasesApplied) String() string {
	return fmt.Sprintf("port %v at %v holds the alias GUIDs %v", e.GUID, e.Place, e.Aliases)
}

// String implements fmt.Stringer.
func (e *AliasRefused) String() string {
	if e.Alias == 0 {
		return fmt.Sprintf("port %v gets no alias GUIDs: %s", e.GUID, e.Reason)
	}
	return fmt.Sprintf("port %v does not get the alias GUID %v: %s", e.GUID, e.Alias, e.Reason)
}

// maxAliases is the number of entries of GUIDInfo beside a port's own.
const maxAliases = 255

// aliases is what is wanted of GUIDInfo, and what is known of it.
type aliases struct {
	byPort  map[ib.GUID]*aliasPort
	owner   map[ib.GUID]ib.GUID   // port by alias, of those that are in force
	holder  map[ib.GUID]ib.GUID   // port by alias, of those that are, or may be, in a table
	waited  map[ib.GUID]time.Time // since when its owner waits, by alias that another port holds
	refused map[ib.GUID]bool      // ports that do not have all that was asked
	shown   *aliasesShown
	stale   bool // shown has to be built again
}

type aliasPort struct {
	place  ib.Place
	asked  []ib.GUID // as it was said
	given  []ib.GUID // without those that are refused
	have   []ib.GUID // whole blocks, nil before the first was read
	known  []bool    // by block: have is what a Get said
	told   bool      // AliasesApplied
	audit  bool      // the next requests are part of the audit
	wrote  int       // 1 + the block of the last Set that was not read back
	rounds int       // Sets in a row after which a Get said otherwise
	pause  time.Duration
	hold   time.Time // a device that keeps nothing is left alone until then
}

func newAliases() aliases {
	return aliases{byPort: make(map[ib.GUID]*aliasPort), owner: make(map[ib.GUID]ib.GUID), refused: make(map[ib.GUID]bool), holder: make(map[ib.GUID]ib.GUID), waited: make(map[ib.GUID]time.Time)}
}

// setAliases takes the wanted aliases of some ports.
func (c *Core) setAliases(in *AliasesSet) {
	for _, w := range in.Ports {
		a := c.aliases.byPort[w.GUID]
		if a == nil {
			a = &aliasPort{}
			c.aliases.byPort[w.GUID] = a
		}
		c.giveBack(w.GUID, a)
		a.place, a.asked = w.Place, slices.Clone(w.Aliases[:min(len(w.Aliases), maxAliases)])
		a.hold, a.pause = time.Time{}, 0
	}
	for _, w := range in.Ports {
		c.allot(w.GUID, c.aliases.byPort[w.GUID])
	}
	c.allotRefused()
}

// giveBack makes the aliases of a port free for others.
func (c *Core) giveBack(guid ib.GUID, a *aliasPort) {
	for _, g := range a.given {
		if c.aliases.owner[g] == guid {
			delete(c.aliases.owner, g)
			delete(c.aliases.waited, g)
		}
	}
	for _, g := range a.asked {
		c.faults.Clear(fault.Key{Kind: fault.AliasRefused, GUID: g, Place: a.place})
	}
	a.given, a.told, a.rounds = nil, false, 0
}

// allot decides which of the aliases asked for a port gets. Port and alias GUIDs share one space, in which the first owner
// keeps its GUIDs.
func (c *Core) allot(guid ib.GUID, a *aliasPort) {
	given := make([]ib.GUID, len(a.asked))
	refused := make(map[ib.GUID]string)
	delete(c.aliases.refused, guid)
	for i, g := range a.asked {
		if g == 0 {
			continue
		}
		if reason := c.conflict(guid, g); reason != "" {
			refused[g] = reason
			continue
		}
		given[i] = g
		c.aliases.owner[g] = guid
	}
	for _, g := range a.asked {
		k := fault.Key{Kind: fault.AliasRefused, GUID: g, Place: a.place}
		if reason := refused[g]; reason == "" {
			c.faults.Clear(k)
		} else {
			c.aliases.refused[guid] = true
			c.problem(k, &AliasRefused{GUID: guid, Alias: g, Reason: reason})
		}
	}
	if !slices.Equal(given, a.given) {
		a.given, a.told = given, false
		c.aliases.stale = true
	}
	c.seatAliases(guid)
}

// conflict says why a GUID cannot be an alias of a port.
func (c *Core) conflict(guid, alias ib.GUID) string {
	if !alias.Valid() {
		return "it is no GUID"
	}
	if owner, taken := c.aliases.owner[alias]; taken {
		if owner == guid {
			return "it stands twice in the list"
		}
		return fmt.Sprintf("it belongs to port %v", owner)
	}
	if p, ok := c.byPort[alias]; ok {
		return fmt.Sprintf("it is the port GUID of node %v", c.topo.NodeGUID(c.ports[p].node))
	}
	if len(c.members.byGUID[alias]) > 0 {
		return "it is a port GUID that memberships are granted to"
	}
	return ""
}

// allotRefused tries again to allot the aliases that were refused because another port had them.
func (c *Core) allotRefused() {
	if len(c.aliases.refused) == 0 {
		return
	}
	for _, guid := range slices.Sorted(maps.Keys(c.aliases.refused)) {
		a := c.aliases.byPort[guid]
		for _, g := range a.given {
			delete(c.aliases.owner, g)
		}
		c.allot(guid, a)
	}
}

// seatAliases looks at the aliases of a port that came, went or is to have
// others.
func (c *Core) seatAliases(guid ib.GUID) {
	a := c.aliases.byPort[guid]
	if a == nil {
		return
	}
	c.aliases.stale = true
	p, ok := c.byPort[guid]
	if !ok || !c.ports[p].placed {
		for _, g := range slices.Concat(a.have, a.given) {
			c.letGo(g, guid)
		}
		for _, g := range a.given {
			delete(c.aliases.waited, g)
		}
		a.have, a.known, a.told = nil, nil, false
		return
	}
	c.q.MarkPort(work.GUID, p)
}

// touchAliases looks at the aliases of a port of which more is known now.
func (c *Core) touchAliases(p topo.PortID) {
	if len(c.aliases.byPort) == 0 {
		return
	}
	if a := c.aliases.byPort[c.topo.GUIDOf(p)]; a != nil && !a.told {
		c.q.MarkPort(work.GUID, p)
	}
}

// claimed reports whether a port that was found shows a GUID that is an alias of another, and closes it. Only a port that a
// grant names at its place comes before an alias.
func (c *Core) claimed(guid ib.GUID, p topo.PortID) bool {
	owner, taken := c.aliases.owner[guid]
	if !taken {
		return false
	}
	if c.entitled(guid, c.topo.PlaceOf(p)) {
		delete(c.aliases.owner, guid)
		a := c.aliases.byPort[owner]
		c.giveBack(owner, a)
		defer c.allot(owner, a)
		return false
	}
	first := c.aliases.byPort[owner].place
	c.duplicate(guid, first, p)
	return true
}
