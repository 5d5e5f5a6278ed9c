package sm

import (
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/refusing"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// PortCounted is the input by which package counterwatch says how many packets the switch
// port has received in front of an adapter of View.Refusing.
type PortCounted struct {
	GUID    ib.GUID // port GUID of the adapter
	Packets uint64
}

func (*PortCounted) input() {}

// RefusingPort is an adapter that answers under none of its M_Keys. The packets that the
// switch port in front receives say whether it works.
type RefusingPort = refusing.Listed

// MKeyRefused says that an adapter works and refuses its M_Key. The switch port in front is then closed, until the adapter
// answers under a key of ours or under none. See package refusing.
type MKeyRefused refusing.Refused

func (*MKeyRefused) FabricEvent() {}

// String implements fmt.Stringer.
func (e *MKeyRefused) String() string {
	how := "shows an M_Key that is not ours"
	if e.Packets > 0 {
		how = fmt.Sprintf("answers under no M_Key of ours and has sent %d packets meanwhile", e.Packets)
	}
	then := "the switch port is closed until it answers under a key of ours or none"
	if e.Open {
		then = fmt.Sprintf("the switch port stays open, for %d were closed for this within %v: look at the firmware of these hosts, then close it with: portcullis fabric health mark %v", refusing.MaxClosed, refusing.Window, e.Place)
	}
	return fmt.Sprintf("port %v at %v %s; its host gave it another; %s", e.GUID, e.Place, how, then)
}

// MKeyObeyed says that an adapter for which a switch port was closed answers again.
type MKeyObeyed struct {
	GUID  ib.GUID
	Place ib.Place
}

func (*MKeyObeyed) FabricEvent() {}

// String implements fmt.Stringer.
func (e *MKeyObeyed) String() string {
	return fmt.Sprintf("port %v at %v answers again; its switch port is opened", e.GUID, e.Place)
}

// refusingFabric is the core as package refusing knows it, and refusingActions what that has it do.
type (
	refusingFabric  struct{ desk }
	refusingActions struct{ desk }
)

var (
	_ refusing.Fabric  = refusingFabric{}
	_ refusing.Actions = refusingActions{}
)

// newRefusing returns what is known of adapters that refuse their keys, of a core that has all that it asks.
func newRefusing(c *Core) refusing.Adapters {
	return refusing.New(&refusing.Parts{
		Fabric: refusingFabric{desk{c}}, Actions: refusingActions{desk{c}}, Keys: c.mkeys, Topo: &c.topo, Queue: &c.q, Health: c.health,
	}, c.cfg.Controls.Ports.Closes())
}

func (f refusingFabric) Port(p topo.PortID) refusing.Port {
	pt := &f.ports[p]
	return refusing.Port{Info: &pt.info, IsRead: pt.known, HasObeyed: pt.obeyed}
}

func (f refusingFabric) IsAlive(id topo.NodeID) bool    { return f.nodes[id].alive }
func (f refusingFabric) IsSilent(id topo.NodeID) bool   { return f.nodes[id].silent }
func (f refusingFabric) IsAdapter(p topo.PortID) bool   { return f.wrote.IsAdapter(p) }
func (f refusingFabric) IsAtPlace(p topo.PortID) bool   { return f.mkeys.Places().IsVerified(p) }
func (f refusingFabric) IsWriting() bool                { return f.writing() }
func (f refusingFabric) IsProtected(p topo.PortID) bool { return f.quarantine.IsProtected(p) }
func (f refusingFabric) IsPaused(x work.Ref) bool       { return f.failures.IsPaused(x) }

func (f refusingActions) Unlink(p topo.PortID)     { f.unlink(p) }
func (f refusingActions) Shut(p topo.PortID)       { f.quarantine.Shut(p) }
func (f refusingActions) Doubt(p topo.PortID)      { f.keyDoubted(p) }
func (f refusingActions) ReadPort(p topo.PortID)   { f.background(p) }
func (f refusingActions) AskLater(d time.Duration) { f.after(d, work.Closed, work.Ref{}) }
func (f refusingActions) ShowSoon()                { f.viewDue = true }

func (f refusingActions) NoteWrite(p topo.PortID, lid ib.LID) {
	f.reports.NoteHostWrite(p, violation.HostWrite{Field: violation.HostMKey, LID: lid})
}

func (f refusingActions) ReportRefused(r refusing.Refused) {
	e := MKeyRefused(r)
	f.problem(fault.Key{Kind: fault.KeyRefused, Place: r.Place}, &e)
}

func (f refusingActions) ReportObeyed(guid ib.GUID, place ib.Place) {
	f.event(&MKeyObeyed{GUID: guid, Place: place})
}
