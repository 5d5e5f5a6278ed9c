// Package rotation changes the M_Keys of devices from time to time.
//
// Which device has its turn, and when, is decided by keys.Rotator. A [Rotation] lists the devices for it, has the
// change planned, and ends the turn of a device that is on its new key, or cannot be brought there now.
package rotation

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/work"
	"portcullis/fabricsm/topo"
)

// Core is what a Rotation knows of the core.
type Core interface {
	// Now returns the time of the step.
	Now() time.Time
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
}

// Actions is what a Rotation has the core do.
type Actions interface {
	// Report has an event sent.
	Report(fault.Event)
	// After has an alarm come after a time.
	After(time.Duration, work.Alarm, work.Ref)
	// InBackground has work done that no other work waits for.
	InBackground(work.Ref)
	// ShowSoon has a view made.
	ShowSoon()
}

// Store makes cycles survive a restart.
type Store interface {
	SaveCycle(keys.Cycle)
}

// Keys is what a Rotation knows of keys, and has done about them.
type Keys interface {
	// Ring returns the known keys of an end port, nil for none.
	Ring(topo.PortID) *keys.Ring
	// Next returns the next step about the key of an end port.
	Next(topo.PortID, *keys.Ring) keys.Step
	// Save has the record of a key saved before anything is sent, if it changed.
	Save(*keys.Ring)
	// IsReleasing reports whether all keys are given back.
	IsReleasing() bool
	// StateChanged shows in views that the state of an end port has changed.
	StateChanged(topo.PortID)
}

// Parts are the parts of a subnet manager that a Rotation works with.
type Parts struct {
	Core    Core
	Actions Actions
	Store   Store
	Keys    Keys
	Topo    *topo.Builder
	Queue   *work.Queue
	Book    *keys.Book
}

// Rotation is the progress of the rotation of M_Keys. Use New.
type Rotation struct {
	core  Core
	act   Actions
	store Store
	keys  Keys
	topo  *topo.Builder
	queue *work.Queue
	book  *keys.Book

	config  keys.RotationConfig
	source  keys.Source
	rotator *keys.Rotator
	armed   bool                     // work.Rotate runs
	settled bool                     // the fabric was, so all devices that are there are known
	turning map[ib.GUID]time.Time    // devices whose turn it is, by its end whatever comes
	dual    map[topo.PortID]dualness // of ports with keys
	asking  int                      // of which so many were not answered yet
}

// New returns a rotation that does nothing before Start.
func New(p *Parts) Rotation {
	return Rotation{core: p.Core, act: p.Actions, store: p.Store, keys: p.Keys, topo: p.Topo, queue: p.Queue, book: p.Book}
}

// Start begins to wait for the first cycle. saved are the cycles that were saved, in that order.
func (r *Rotation) Start(cfg keys.RotationConfig, source keys.Source, saved []keys.Cycle) {
	rotator, err := keys.NewRotator(cfg, []keys.Kind{keys.MKey}, r.core.Now(), saved)
	if err != nil {
		r.act.Report(&keyevent.KeyProblem{Reason: err.Error()})
		return
	}
	r.config, r.source, r.rotator = cfg, source, rotator
	r.turning, r.dual = make(map[ib.GUID]time.Time), make(map[topo.PortID]dualness)
}

// SetSettled records whether the fabric is settled as this subnet manager wants it.
func (r *Rotation) SetSettled(settled bool) { r.settled = settled }

// Turning returns how many keys are being changed.
func (r *Rotation) Turning() int { return len(r.turning) }

// Cycle returns the latest cycle, the zero Cycle if there was none.
func (r *Rotation) Cycle() (y keys.Cycle) {
	if r.rotator != nil {
		y = r.rotator.Cycle(keys.MKey)
	}
	return y
}

// mayRotate reports whether it is known which devices there are and can be rotated.
func (r *Rotation) mayRotate() bool {
	// A device that fell silent before it was asked is waited for no longer than the others.
	return r.core.IsWriting() && r.core.IsReady() && r.settled && (r.asking == 0 || !r.core.HasBackground())
}

// rotate does what is due of the rotation of keys.
func (r *Rotation) rotate() {
	if r.rotator == nil || r.keys.IsReleasing() {
		return
	}
	for {
		now := r.core.Now()
		turn := r.rotator.Next(now, r.mayRotate(), r.fleet)
		for _, y := range turn.Save {
			r.store.SaveCycle(y)
		}
		for _, s := range turn.Ended {
			old := keys.Ages(r.book.Records(), now, r.config.Period, r.isDualDevice)
			r.act.Report(&keyevent.KeysRotated{Summary: s, Old: len(old)})
			r.act.ShowSoon()
		}
		for _, t := range turn.Change {
			r.turn(t, func(ring *keys.Ring) bool { return r.changeKey(ring, t) })
		}
		for _, t := range turn.Commit {
			r.turn(t, func(ring *keys.Ring) bool { ring.Commit(); return true })
		}
		if !turn.Wake.IsZero() && !r.armed {
			r.armed = true
			r.act.After(max(0, turn.Wake.Sub(now)), work.Rotate, work.Ref{})
		}
		if len(turn.Change)+len(turn.Commit) == 0 {
			return
		}
		if len(r.turning) > 0 {
			return // Turned goes on
		}
	}
}

// turn begins the turn of one device.
func (r *Rotation) turn(t keys.Target, do func(*keys.Ring) bool) {
	ring := r.book.Ring(t.Kind, t.GUID)
	p, ok := r.core.PortByGUID(t.GUID)
	if !ok || ring == nil || !do(ring) {
		r.rotator.Done(t.Kind, t.GUID, false)
		return
	}
	r.turning[t.GUID] = r.core.Now().Add(turnPatience)
	r.act.After(turnPatience, work.Turn, work.OnPort(work.Set, p))
	r.queue.MarkPort(work.Set, p)
	r.Turned(p)
}

// changeKey plans the key of an epoch, unless an earlier change goes on.
func (r *Rotation) changeKey(ring *keys.Ring, t keys.Target) bool {
	rec := ring.Record()
	if !rec.Pending.IsZero() {
		return true
	}
	h, err := r.source.Make(t.Kind, t.GUID, t.Epoch, r.core.Now())
	if err == nil {
		err = ring.Plan(h)
	}
	if err != nil {
		r.act.Report(&keyevent.KeyProblem{GUID: t.GUID, Reason: err.Error()})
		return false
	}
	r.keys.Save(ring)
	return true
}

// Turned ends the turn of a device that is on its new key, or cannot be brought
// there now.
func (r *Rotation) Turned(p topo.PortID) {
	tp := r.topo.Port(p)
	if r.turning[tp.GUID].IsZero() {
		return
	}
	ring, ok := r.keys.Ring(p), false
	if ring != nil && r.core.IsAlive(tp.Node) && !r.core.IsSilent(tp.Node) {
		if do := r.keys.Next(p, ring).Do; do == keys.Ask || do == keys.Program {
			return
		}
		ok = ring.Settled()
	}
	r.endTurn(tp.GUID, ok)
}

// turnPatience is how long a device may take to get onto its new key. Otherwise a device that answers with errors, or whose
// port cannot be written, would end the rotation for all others. Its record keeps both keys, and it gets there when it can.
const turnPatience = 30 * time.Second

// TurnOver ends the turn of a device that had all the time there is.
func (r *Rotation) TurnOver(p topo.PortID) {
	guid := r.topo.GUIDOf(p)
	if end := r.turning[guid]; !end.IsZero() && !end.After(r.core.Now()) {
		r.endTurn(guid, false)
	}
}

// Gone ends the turn of a device that is no longer there.
func (r *Rotation) Gone(guid ib.GUID) { r.endTurn(guid, false) }

func (r *Rotation) endTurn(guid ib.GUID, ok bool) {
	if r.turning[guid].IsZero() {
		return
	}
	delete(r.turning, guid)
	r.rotator.Done(keys.MKey, guid, ok)
	r.Soon()
}

// Due goes on with the rotation.
func (r *Rotation) Due() {
	r.armed = false
	r.rotate()
}

// Soon goes on with the rotation after this step.
func (r *Rotation) Soon() {
	if r.rotator != nil && !r.armed {
		r.armed = true
		r.act.After(0, work.Rotate, work.Ref{})
	}
}

// fleet lists the devices that have keys.
func (r *Rotation) fleet(keys.Kind) []keys.Member {
	var out []keys.Member
	for i := range r.topo.NumPorts() {
		p := topo.PortID(i)
		tp := r.topo.Port(p)
		if !r.core.IsAlive(tp.Node) || !r.topo.IsEndPort(p) {
			continue
		}
		ring := r.keys.Ring(p)
		if ring == nil {
			continue
		}
		rec := ring.Record()
		out = append(out, keys.Member{
			GUID: rec.GUID, Epoch: rec.Current.Epoch, Keyed: !rec.Current.IsZero(), Prior: !rec.Previous.IsZero(),
			Dual: r.IsDual(p), Depth: r.core.Hops(tp.Node), Switch: tp.Num == 0,
		})
	}
	return out
}
