package sm

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/aliases"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// AliasesSet replaces the alias GUIDs of the ports it names. Others keep theirs.
type AliasesSet struct{ Ports []AliasGUIDs }

// AliasGUIDs assigns GUIDs to an end port.
type AliasGUIDs = aliases.Wanted

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

// aliasFabric is the core as package aliases uses it.
type aliasFabric struct{ desk }

var _ aliases.Fabric = aliasFabric{}

func (f aliasFabric) IsPlaced(p topo.PortID) bool { return f.ports[p].placed }
func (f aliasFabric) Room(p topo.PortID) int      { return int(f.ports[p].info.GUIDCap) }

func (f aliasFabric) IsMember(g ib.GUID) bool                { return f.members.Has(g) }
func (f aliasFabric) IsEntitled(g ib.GUID, at ib.Place) bool { return f.members.IsEntitled(g, at) }

func (f aliasFabric) Duplicate(g ib.GUID, at ib.Place, p topo.PortID) { f.contests.Duplicate(g, at, p) }

func (f aliasFabric) RetryLater(p topo.PortID, d time.Duration) {
	f.after(d, work.Retry, work.OnPort(work.GUID, p))
}

func (f aliasFabric) Applied(guid ib.GUID, at ib.Place, list []ib.GUID) {
	f.viewDue = true
	f.event(&AliasesApplied{GUID: guid, Place: at, Aliases: list})
}

func (f aliasFabric) Refuse(k fault.Key, guid, alias ib.GUID, reason string) {
	f.problem(k, &AliasRefused{GUID: guid, Alias: alias, Reason: reason})
}

// ShowsStrange reports an entry of a port with aliases that is the GUID of another port. It is written again as all that is
// not wanted.
func (f aliasFabric) ShowsStrange(p topo.PortID, g ib.GUID) {
	if f.wrote.IsAdapter(p) && f.wrote.BelongsTo(g, p) {
		f.reports.NoteHostWrite(p, violation.HostWrite{Field: violation.HostAlias, LID: f.ports[p].lid, Victim: g})
	}
}
