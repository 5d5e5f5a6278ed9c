// Package mkeys assigns an M_Key to each device of a fabric, and says which one a request shows.
//
// A [Keeper] finds out which key a device is on, has it programmed with another one, and keeps requests back until the key
// of their target is known. It changes keys that another party may have seen, and removes all of them on demand. It makes
// no request of its own: it marks work, and the core asks it when a request goes out or has ended.
//
// Package keyplace says where a key may be shown, exposed remembers which keys another party may have seen, lend which ones
// tools have, and rotation changes keys from time to time. Package keyimport holds the keys of another subnet manager.
package mkeys

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/controls"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/mkeys/exposed"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/sm/mkeys/lend"
	"portcullis/fabricsm/sm/mkeys/rotation"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Core is what a Keeper knows of the core.
type Core interface {
	// Now returns the time of the step, and Age the time since the start.
	Now() time.Time
	Age() time.Duration
	// PortByGUID returns the end port that shows a GUID.
	PortByGUID(ib.GUID) (topo.PortID, bool)
	// IsAlive reports whether a node is part of the fabric, and IsSilent whether it does not answer.
	IsAlive(topo.NodeID) bool
	IsSilent(topo.NodeID) bool
	// Hops returns the length of the directed route to a node.
	Hops(topo.NodeID) int
	// IsWriting reports whether devices may be changed.
	IsWriting() bool
	// IsReady reports whether it is known which partitions are wanted.
	IsReady() bool
	// HasBackground reports whether background work waits.
	HasBackground() bool
	// Entry returns the switch port by which the port of an adapter is asked that a piece of work is about; None: the
	// request goes the way of the node.
	Entry(work.Ref) topo.PortID
	// Tries returns how often a piece of work was tried without an answer, and MaxTries how often one is tried.
	Tries(work.Ref) int
	MaxTries() int
}

// Actions is what a Keeper has the core do.
type Actions interface {
	// Report has an event sent.
	Report(fault.Event)
	// After has an alarm come after a time.
	After(time.Duration, work.Alarm, work.Ref)
	// InBackground has work done that no other work waits for.
	InBackground(work.Ref)
	// ShowSoon has a view made.
	ShowSoon()
	// Disturb records that the fabric is not settled any longer.
	Disturb()
	// ProbeAnew asks at once what is behind a port, as if nothing had failed there.
	ProbeAnew(topo.PortID)
	// Obeyed follows that a device answered under its key, or, if not keyed, under none.
	Obeyed(p topo.PortID, keyed bool)
	// HasNoKey follows that a device answered which is to have no key, and has none.
	HasNoKey(topo.PortID)
	// Refused follows that a device answers under none of its keys. shown: an answer shows that it has another.
	Refused(p topo.PortID, shown bool)
	// NoteTakenOff reports that the host of an adapter has removed its key.
	NoteTakenOff(p topo.PortID, lid ib.LID)
}

// Store makes things survive a restart.
type Store interface {
	// SaveKey saves the record of a key.
	SaveKey(keys.Record)
	// SaveCycle saves a cycle of the rotation.
	SaveCycle(keys.Cycle)
	// SaveExposed saves the progress of replacing a key that another party has; no mark: no other party has it.
	SaveExposed(guid ib.GUID, mark string)
	// SaveLease saves the holder of a key and the end of the lease; no holder: it is over.
	SaveLease(guid ib.GUID, until time.Time, to string)
	// SaveReleased saves whether all keys are given back.
	SaveReleased(bool)
}

// Parts are the parts of a subnet manager that a Keeper works with.
type Parts struct {
	Core     Core
	Fabric   keyplace.Fabric
	Actions  Actions
	Store    Store
	Law      keyplace.Law
	Topo     *topo.Builder
	Queue    *work.Queue
	Faults   *fault.List
	Own      ib.GUID // port GUID of our own port
	Controls controls.Keys
}

// Keeper is the known state of M_Keys. Use New.
type Keeper struct {
	core     Core
	fabric   keyplace.Fabric
	act      Actions
	store    Store
	topo     *topo.Builder
	queue    *work.Queue
	faults   *fault.List
	cfg      *Config
	own      ib.GUID
	controls controls.Keys

	book                *keys.Book
	places              keyplace.Map
	exposed             exposed.Record
	leases              lend.Leases
	rotation            rotation.Rotation
	waiting             map[topo.PortID][]work.Ref // work on a device whose key is not known yet, by the port that has the key
	setting             []bool                     // by topo.PortID: the Set that is out sets a new key
	releasing, released bool                       // all keys are given back; and were, as far as they can
	retired             []ib.GUID                  // for views: whose keys were destroyed last
	states              states                     // for views
}

// New returns a keeper that knows of no key.
func New(p *Parts, cfg *Config) *Keeper {
	book, err := keys.NewBook(nil)
	if err != nil {
		panic("mkeys: " + err.Error())
	}
	m := &Keeper{
		core: p.Core, fabric: p.Fabric, act: p.Actions, store: p.Store,
		topo: p.Topo, queue: p.Queue, faults: p.Faults, cfg: cfg, own: p.Own, controls: p.Controls, book: book,
	}
	m.places = keyplace.New(p.Fabric, p.Law, p.Topo, book, keyplace.Options{
		Policy: cfg.Places, AttachedTo: cfg.AttachedTo, Import: cfg.Import, Controls: p.Controls,
	})
	m.leases = lend.New(p.Core, p.Actions, p.Store, lending{m}, p.Controls)
	m.rotation = rotation.New(&rotation.Parts{
		Core: p.Core, Actions: p.Actions, Store: p.Store, Keys: turning{m}, Topo: p.Topo, Queue: p.Queue, Book: book,
	})
	return m
}

// IsOn reports whether devices get keys.
func (m *Keeper) IsOn() bool { return m.cfg.IsOn() }

// Places says where keys may be shown.
func (m *Keeper) Places() *keyplace.Map { return &m.places }

// Leases returns the keys that are lent.
func (m *Keeper) Leases() *lend.Leases { return &m.leases }

// Rotation returns the progress of the rotation of keys.
func (m *Keeper) Rotation() *rotation.Rotation { return &m.rotation }

// LoadExposed takes the saved progress of replacing a key.
func (m *Keeper) LoadExposed(guid ib.GUID, mark string) { m.exposed.Load(guid, mark) }

// LoadReleased takes whether keys were given back.
func (m *Keeper) LoadReleased(released bool) { m.releasing = released }

// Start takes the records and cycles that were saved, after all else was loaded. The caller has to check the records. If
// one makes no sense, no key is used, and devices that have one do not answer.
func (m *Keeper) Start(records []keys.Record, cycles []keys.Cycle) {
	if book, err := keys.NewBook(records); err != nil {
		m.cfg.Source = nil
		m.act.Report(&keyevent.KeyProblem{Reason: err.Error()})
	} else {
		*m.book = *book
		m.places.ForgetRings()
		m.releasing = m.releasing || m.cfg.Release
	}
	if m.IsOn() {
		m.rotation.Start(m.cfg.Rotation, m.cfg.Source, cycles)
		m.leases.Start()
	}
}

// Grow makes room for the states of new ports.
func (m *Keeper) Grow() { m.states.shown.Grow(m.topo.NumPorts()) }

// Clear forgets what is to be shown of a port.
func (m *Keeper) Clear(p topo.PortID) {
	m.setSetting(p, false)
	m.states.shown.Set(int32(p), nil)
}

// Remove forgets a port that goes.
func (m *Keeper) Remove(p topo.PortID) {
	delete(m.waiting, p)
	m.exposed.Forget(p)
	m.rotation.Forget(p)
}

// SetMaster records that this subnet manager begins to configure the fabric.
func (m *Keeper) SetMaster() {
	m.renewKeys()
	m.rotation.SetSettled(false)
}

// SetSettled records that nothing is left to do.
func (m *Keeper) SetSettled() {
	m.tellReleased()
	m.rotation.SetSettled(true)
	m.rotation.Soon()
}

// problem reports a fault, once, and keeps it in the views until it is solved.
func (m *Keeper) problem(k fault.Key, e fault.Event) {
	if m.faults.Set(k, e.String()) {
		m.act.Report(e)
	}
}

// isAlive reports whether the node of a port is part of the fabric.
func (m *Keeper) isAlive(p topo.PortID) bool { return m.core.IsAlive(m.topo.Port(p).Node) }

// turning is a Keeper as package rotation uses it.
type turning struct{ m *Keeper }

var _ rotation.Keys = turning{}

func (t turning) Ring(p topo.PortID) *keys.Ring              { return t.m.places.Ring(p) }
func (t turning) Next(p topo.PortID, r *keys.Ring) keys.Step { return t.m.places.Next(p, r) }
func (t turning) Save(r *keys.Ring)                          { t.m.saveKey(r) }
func (t turning) IsReleasing() bool                          { return t.m.releasing }
func (t turning) StateChanged(p topo.PortID)                 { t.m.showKey(p) }

// lending is a Keeper as package lend uses it.
type lending struct{ m *Keeper }

var _ lend.Keys = lending{}

func (l lending) IsLendable(guid ib.GUID) bool { return l.m.IsOn() && l.HasKey(guid) && !l.m.releasing }

func (l lending) HasKey(guid ib.GUID) bool {
	r := l.m.book.Ring(keys.MKey, guid)
	return r != nil && hasKey(r)
}

func (l lending) LeaseChanged(guid ib.GUID) { l.m.showKeyOf(guid) }

func (l lending) Replace(guid ib.GUID) {
	l.m.expose(guid, exposed.Shown)
	if p, ok := l.m.core.PortByGUID(guid); ok {
		l.m.act.Disturb()
		l.m.queue.MarkPort(work.Info, p)
	}
}
