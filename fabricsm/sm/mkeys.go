package sm

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/mkeys"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// LendKey says that a tool has the M_Key of one device from now on, and until when. Then the device gets another key and
// drops that one, also if this subnet manager or the device was away meanwhile. A second LendKey sets another time. A
// caller that hands a key out sends LendKey first, and waits until the view shows it: a lease that was not saved would
// never end.
type LendKey struct {
	GUID  ib.GUID   // port GUID, of a switch that of port 0
	Until time.Time // at most lend.Longest from now, else that; not after now: it ends
	To    string    // the holder, for people; at most 64 bytes are kept
}

// MoveKey says that an operator has verified a device at a place: its M_Key, which was assigned at another place, may be
// shown there. A device that holds a key does not even report its identity unless it is shown that key. So the place may be
// one at which no device is seen.
type MoveKey struct {
	GUID  ib.GUID  // port GUID of a CA or router
	Place ib.Place // zero: where it is seen now, unless that is disputed
}

// ReleaseKeys removes the M_Keys of all devices, so that another subnet manager can take over a fabric that nothing locks.
// A device that cannot be asked keeps its key, which stays saved; KeysReleased says how many those are. No device gets a
// key any more, not after a restart either, until ResumeKeys. A second ReleaseKeys reports again how it ended.
type ReleaseKeys struct{}

// ResumeKeys has devices get keys again after ReleaseKeys.
type ResumeKeys struct{}

// RetireKey says that a device has left permanently: its M_Key is destroyed, and no key of an epoch that it had is made
// again. A device that is seen keeps its key: without it the device would be out of reach. A device that comes back with
// that key is never shown another one's; it stays out until it is reset.
type RetireKey struct {
	GUID ib.GUID // port GUID, of a switch that of port 0
}

func (*LendKey) input()     {}
func (*MoveKey) input()     {}
func (*ReleaseKeys) input() {}
func (*ResumeKeys) input()  {}
func (*RetireKey) input()   {}

// keyFabric, keyCore, keyActions and keyStore are the core as package mkeys uses it.
type (
	keyFabric  struct{ desk }
	keyCore    struct{ desk }
	keyActions struct{ desk }
	keyStore   struct{ desk }
)

var (
	_ keyplace.Fabric = keyFabric{}
	_ mkeys.Core      = keyCore{}
	_ mkeys.Actions   = keyActions{}
	_ mkeys.Store     = keyStore{}
)

// newKeeper returns the keeper of M_Keys of a core.
func newKeeper(c *Core) *mkeys.Keeper {
	d := desk{c}
	return mkeys.New(&mkeys.Parts{
		Core: keyCore{d}, Fabric: keyFabric{d}, Actions: keyActions{d}, Store: keyStore{d}, Law: c.law,
		Topo: &c.topo, Queue: &c.q, Faults: &c.faults, Own: c.cfg.PortGUID,
		Controls: c.cfg.Controls.Keys,
	}, &c.cfg.MKey)
}

func (f keyFabric) Own() topo.PortID                 { return f.own() }
func (f keyFabric) Root() (topo.NodeID, topo.PortID) { return f.root, f.rootPort }
func (f keyFabric) Up(id topo.NodeID) topo.PortID    { return f.tree.Up(id) }
func (f keyFabric) IsChallenged(p topo.PortID) bool  { return f.contests.IsOpen(p) }
func (f keyFabric) IsFenced(p topo.PortID) bool      { return f.contests.IsFenced(p) }
func (f keyFabric) IsDark(p topo.PortID) bool        { return f.dark(p) }

func (f keyFabric) SaveBehind(at ib.Place, guid ib.GUID) {
	f.save(Fact{Kind: FactBehind, GUID: at.Switch, Port: at.Port, Behind: guid})
}

func (f keyCore) IsAlive(id topo.NodeID) bool  { return f.nodes[id].alive }
func (f keyCore) IsSilent(id topo.NodeID) bool { return f.nodes[id].silent }
func (f keyCore) Hops(id topo.NodeID) int      { return f.tree.RouteTo(id).Len() }
func (f keyCore) IsWriting() bool              { return f.writing() }
func (f keyCore) IsReady() bool                { return f.members.IsReady() }
func (f keyCore) HasBackground() bool          { return f.idleWork.IsArmed() }
func (f keyCore) Entry(x work.Ref) topo.PortID { return f.ownEntry(x) }
func (f keyCore) Tries(x work.Ref) int         { return f.failures.Tries(x) }
func (f keyCore) MaxTries() int                { return f.cfg.Tries }

func (f keyActions) InBackground(x work.Ref)           { f.idleWork.Add(x) }
func (f keyActions) ShowSoon()                         { f.viewDue = true }
func (f keyActions) Disturb()                          { f.disturb() }
func (f keyActions) HasNoKey(p topo.PortID)            { f.refusing.Reopen(p) }
func (f keyActions) Refused(p topo.PortID, shown bool) { f.refusing.Refuses(p, shown) }

func (f keyActions) ProbeAnew(p topo.PortID) {
	f.failures.Forget(work.OnPort(work.Probe, p))
	f.ports[p].pause = 0
	f.q.MarkPort(work.Probe, p)
}

func (f keyActions) Obeyed(p topo.PortID, keyed bool) {
	f.ports[p].obeyed = f.ports[p].obeyed || keyed
	f.refusing.Obeys(p)
	f.refusing.Reopen(p)
}

func (f keyActions) NoteTakenOff(p topo.PortID, lid ib.LID) {
	if f.wrote.IsAdapter(p) {
		f.reports.NoteHostWrite(p, violation.HostWrite{Field: violation.HostMKey, LID: lid})
	}
}

func (f keyStore) SaveKey(r keys.Record) { f.save(KeyFactOf(r)) }

func (f keyStore) SaveCycle(y keys.Cycle) {
	f.save(RotationFactOf(y))
	if y.Succession && !y.Ended.IsZero() && !y.Began.Before(f.born) {
		f.pkeys.Judge.KeysDropped()
	}
}

func (f keyStore) SaveExposed(guid ib.GUID, mark string) {
	f.save(Fact{Kind: FactExposed, GUID: guid, Mark: mark})
}

func (f keyStore) SaveLease(guid ib.GUID, until time.Time, to string) {
	f.save(Fact{Kind: FactLent, GUID: guid, Since: until, Mark: to})
}

func (f keyStore) SaveReleased(released bool) {
	s := Fact{Kind: FactReleased}
	if released {
		s.Mark = "released"
	}
	f.save(s)
}

// start takes the saved records of keys and cycles of their rotation, once all else is loaded.
func (f keyStore) start(facts []Fact) {
	var records []keys.Record
	for _, r := range KeyRecords(facts) {
		if r.Kind == keys.MKey {
			records = append(records, r)
		}
	}
	var cycles []keys.Cycle // the last one counts
	for i := range facts {
		if y := facts[i].Cycle; y != nil && y.Kind == keys.MKey {
			cycles = []keys.Cycle{*y}
		}
	}
	f.mkeys.Start(records, cycles)
	if m := &f.cfg.MKey; m.IsOn() && !m.Release && m.Rotation.Succeeds && m.Rotation.Period > 0 {
		f.pkeys.Judge.AwaitKeys()
		f.after(keys.SuccessionPatience, work.Succession, work.Ref{})
	}
}

// keyDoubted records that a device may have been restarted: it was silent, or its link was away.
func (c *Core) keyDoubted(p topo.PortID) {
	c.ports[p].doubts++
	c.mkeys.Doubt(p)
}
