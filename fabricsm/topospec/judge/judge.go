package judge

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// Seen is a fact: what answered behind a switch port. All but At is what the
// device says of itself, in NodeInfo.
type Seen struct {
	At          ib.Place    // the switch port it answered behind
	GUID        ib.GUID     // node GUID
	Port        ib.PortNum  // its port at the cable, LocalPortNum
	Type        ib.NodeType // what it says it is
	NumPorts    uint8
	PortGUID    ib.GUID
	SystemImage ib.GUID
}

func (s *Seen) end() topospec.End { return topospec.End{GUID: s.GUID, Port: s.Port} }

// Ruling is the answer to a fact.
type Ruling struct {
	Verdict  Verdict
	Action   Action // what the mode in force does
	Would    Action // what Enforce would do
	State    State
	Fields   Fields       // that differ
	Expected topospec.End // at this port, zero: nothing or not known
	Belongs  topospec.End // switch port at which the GUID seen is meant to be, zero: nowhere
	Pair     ib.Place     // the other port of a swap
	Alarm    bool         // a person is to be told: the mode is above Observe and it is not as it should be
	Page     bool         // at once: a protected port is violated
}

// Change is a transition of one port, for an event.
type Change struct {
	At       ib.Place
	From, To State
	Seen     Seen // zero GUID: nothing
	Ruling   Ruling
	By, Why  string // of a release
}

// Judge compares the fabric with a specification, one fact at a time. It is a
// state machine with one owner: no clock, no I/O, and a fact costs a handful of hash
// lookups whatever the size of the fabric.
type Judge struct {
	spec    *topospec.Spec
	mode    topospec.Mode
	fields  topospec.Fields
	ports   []record // by slot
	extra   map[ib.Place]*record
	entered []uint16 // by device: verified link ends that lead to it
	rooted  topospec.DeviceID
	own     ib.Place // switch port that the Subnet Manager's adapter is cabled to
	guarded func(ib.Place) bool

	good, bad []uint8 // by link: ends that are verified, ends that are not
	verified  int     // links with a good end and no bad one
	lit       int     // links with an end of either kind

	changes []Change
	queue   []topospec.DeviceID // switches whose ports are judged again
}

// record is what is known of a port.
type record struct {
	seen    Seen
	verdict Verdict
	state   State
	was     bool // it was verified once
	steady  bool // it was verified, and the same has been seen since
	pair    ib.Place
	action  Action
}

// maxExtra bounds the ports that the specification does not have and of which
// something was told, so that no device can fill the memory.
const maxExtra = 1 << 14

// New makes a judge that has seen nothing. mode is the one that was in force: a
// Subnet Manager that restarts goes on as it was, and a new fabric begins with
// Observe. protected reports a port that must not be disabled (rule 6, see Guard);
// it is asked only when one is about to be, and may be nil.
func New(spec *topospec.Spec, mode topospec.Mode, protected func(ib.Place) bool) *Judge {
	j := &Judge{mode: mode, guarded: protected}
	j.take(spec)
	j.rooted = topospec.None
	return j
}

func (j *Judge) take(spec *topospec.Spec) {
	r := spec.Revision()
	j.spec, j.fields = spec, r.Policy.Fields.WithDefaults()
	j.ports = make([]record, spec.NumSlots())
	j.extra = map[ib.Place]*record{}
	j.entered = make([]uint16, len(r.Devices))
	j.good, j.bad = make([]uint8, len(r.Links)), make([]uint8, len(r.Links))
	j.verified, j.lit, j.rooted, j.queue = 0, 0, topospec.None, nil
}

// Spec gives the specification in force.
func (j *Judge) Spec() *topospec.Spec { return j.spec }

// Mode gives the mode in force.
func (j *Judge) Mode() topospec.Mode { return j.mode }

// Verified gives how many links are verified, and Score their share of those
// that are to be up.
func (j *Judge) Verified() int { return j.verified }

// Score gives verified links by expected links.
func (j *Judge) Score() topospec.Permille { return topospec.Share(j.verified, j.spec.NumActive()) }

// ErrRefused means that a guard said no.
var ErrRefused = errors.New("refused")

// SetMode puts a mode into force. Only a person does, so by must name one, and
// Enforce needs the score of the policy. All that was seen is judged again, which
// costs a pass over the fabric: Changes says which ports are to be disabled, or are
// let go.
func (j *Judge) SetMode(m topospec.Mode, by string) error {
	if m > j.mode && by == "" {
		return fmt.Errorf("promote %s to %v: %w: only a person does that", j.spec.Revision().Fabric, m, ErrRefused)
	}
	p := &j.spec.Revision().Policy
	if m == topospec.Enforce && j.mode != m && !p.Enough(j.verified, j.spec.NumActive()) {
		return fmt.Errorf("enforce %s: %w: %d of %d links are verified (%v), %v are needed; is it the specification of this fabric?",
			j.spec.Revision().Fabric, ErrRefused, j.verified, j.spec.NumActive(), j.Score(), p.Score())
	}
	if j.mode == m {
		return nil
	}
	j.mode = m
	facts := j.facts()
	for _, at := range order(facts) {
		if rec := j.find(at); rec != nil && rec.seen.GUID != 0 {
			j.apply(rec, rec.seen)
		}
	}
	return nil
}

// Plan is what the specification says of a port before anything behind it is
// asked.
type Plan uint8

// Plans. The zero Plan is PlanHold.
const (
	PlanHold    Plan = iota // the switch is not verified: send nothing beyond the port
	PlanProbe               // ask who is there, and tell the judge
	PlanLeave               // no_discover: send nothing, report the link state
	PlanDisable             // switch the port off, without asking
	PlanDark                // there should be nothing: if there is a link, ask who, and tell the judge
)

// Before says what to do at a switch port before a packet goes through it. In a
// mode below Enforce everything but a boundary is asked.
func (j *Judge) Before(at ib.Place) Plan {
	id := j.spec.DeviceByGUID(at.Switch)
	acts := j.mode == topospec.Enforce
	if acts && (id == topospec.None || !j.trusts(id)) {
		return PlanHold
	}
	rec := j.find(at)
	if acts && rec != nil && rec.state == StateDisabled {
		return PlanDisable
	}
	link, _ := j.spec.LinkAt(j.spec.SlotOf(topospec.EndAt(at)))
	switch {
	case link == nil:
		return PlanDark
	case link.State == topospec.NoDiscover:
		return PlanLeave
	case link.State == topospec.Disabled && acts:
		return PlanDisable
	case link.State == topospec.Disabled || link.State == topospec.Reserved:
		return PlanDark
	default:
		return PlanProbe
	}
}

// trusts reports a switch that was verified on the way.
func (j *Judge) trusts(id topospec.DeviceID) bool { return id == j.rooted || j.entered[id] > 0 }

// Trusts reports that a switch was verified on the way.
func (j *Judge) Trusts(sw ib.GUID) bool {
	id := j.spec.DeviceByGUID(sw)
	return id != topospec.None && j.trusts(id)
}

// IsVerified reports that what is behind a switch port is verified: what a
// membership, a key or a LID may be bound to, in every mode.
func (j *Judge) IsVerified(at ib.Place) bool {
	rec := j.find(at)
	return rec != nil && rec.state == StateVerified
}

// find gives the record of a port, nil if there is none.
func (j *Judge) find(at ib.Place) *record {
	if id := j.spec.SlotOf(topospec.EndAt(at)); id != topospec.None {
		return &j.ports[id]
	}
	return j.extra[at]
}

// recordOf gives the record of a port, nil when there are too many.
func (j *Judge) recordOf(at ib.Place) *record {
	if rec := j.find(at); rec != nil {
		return rec
	}
	if len(j.extra) >= maxExtra {
		return nil
	}
	rec := &record{}
	j.extra[at] = rec
	return rec
}

// Link judges what answered behind a switch port.
func (j *Judge) Link(s Seen) Ruling {
	rec := j.recordOf(s.At)
	if rec == nil {
		return Ruling{Verdict: Held, Alarm: true}
	}
	return j.apply(rec, s)
}

// apply compares, and carries the record to its next state.
func (j *Judge) apply(rec *record, s Seen) Ruling {
	if j.mode == topospec.Enforce && rec.state == StateDisabled {
		rec.seen = s
		r := j.compare(&s)
		r.Verdict, r.Action, r.Would, r.State, r.Pair, r.Alarm = rec.verdict, Disable, Disable, StateDisabled, rec.pair, true
		return r
	}
	r := j.compare(&s)
	r.Action = j.act(&r, &s)
	r.State = next(rec, &r)
	from, same := rec.state, rec.verdict == r.Verdict && rec.action == r.Action && rec.state == r.State && rec.seen == s
	if !same {
		j.count(s.At, rec, r.State, s.GUID)
		rec.steady = r.State == StateVerified || rec.steady && rec.seen == s
		rec.seen, rec.verdict, rec.action, rec.pair = s, r.Verdict, r.Action, r.Pair
		rec.was = rec.was || r.State == StateVerified
		j.changes = append(j.changes, Change{At: s.At, From: from, To: r.State, Seen: s, Ruling: r})
		if r.Verdict == Swapped || r.Verdict == IntraHostSwap {
			j.explain(r.Pair, s.At, r.Verdict)
		}
		j.again()
	}
	return r
}

// act gives what the mode in force does with a ruling, and who is told.
func (j *Judge) act(r *Ruling, s *Seen) Action {
	fine := r.Verdict == Verified || r.Verdict == NotDiscovered
	r.Alarm = j.mode > topospec.Observe && (!fine || r.Fields != 0)
	switch {
	case r.Would == Leave || r.Would == Admit:
		return r.Would
	case j.mode < topospec.Enforce:
		return Admit
	case r.Would == Disable && (s.At == j.own || j.guarded != nil && j.guarded(s.At)):
		r.Page = true
		return Keep
	default:
		return r.Would
	}
}

// next gives the state that a ruling leads to.
func next(rec *record, r *Ruling) State {
	switch {
	case r.Verdict == Verified:
		return StateVerified
	case r.Verdict == Held, r.Action == Hold:
		return StateHeld
	case r.Action == Disable:
		return StateDisabled
	case rec.was:
		return StateDrift
	default:
		return StateSeen
	}
}

// explain tells the other half of a swap that it is one.
func (j *Judge) explain(at, by ib.Place, v Verdict) {
	rec := j.find(at)
	if rec == nil || rec.verdict == v && rec.pair == by {
		return
	}
	rec.verdict, rec.pair = v, by
	r := j.compare(&rec.seen)
	r.Verdict, r.Pair, r.Action, r.State = v, by, rec.action, rec.state
	r.Alarm = j.mode > topospec.Observe
	j.changes = append(j.changes, Change{At: at, From: rec.state, To: rec.state, Seen: rec.seen, Ruling: r})
}

// count keeps the numbers of verified links and of ends that lead to a device.
func (j *Judge) count(at ib.Place, rec *record, to State, guid ib.GUID) {
	from := rec.state
	rec.state = to
	if from == StateVerified && (to != StateVerified || rec.seen.GUID != guid) {
		j.leave(rec.seen.GUID)
	}
	if to == StateVerified && (from != StateVerified || rec.seen.GUID != guid) {
		j.enter(guid)
	}
	i := j.spec.LinkIndex(j.spec.SlotOf(topospec.EndAt(at)))
	if i == topospec.None {
		return
	}
	if link := &j.spec.Revision().Links[i]; link.State != topospec.Active && link.State != topospec.Maintenance {
		return
	}
	wasGood, wasLit := j.isGood(i), j.good[i]+j.bad[i] > 0
	switch {
	case from == StateVerified:
		j.good[i]--
	case isBad(from):
		j.bad[i]--
	}
	switch {
	case to == StateVerified:
		j.good[i]++
	case isBad(to):
		j.bad[i]++
	}
	j.verified += number(j.isGood(i)) - number(wasGood)
	j.lit += number(j.good[i]+j.bad[i] > 0) - number(wasLit)
}

func isBad(s State) bool {
	return s == StateSeen || s == StateHeld || s == StateDrift || s == StateDisabled
}

func (j *Judge) isGood(i int) bool { return j.good[i] > 0 && j.bad[i] == 0 }

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// enter notes a verified way to a device; the first one has the ports of a
// switch judged again.
func (j *Judge) enter(g ib.GUID) {
	if id := j.spec.DeviceByGUID(g); id != topospec.None {
		if j.entered[id]++; j.entered[id] == 1 && id != j.rooted {
			j.requeue(id)
		}
	}
}

func (j *Judge) leave(g ib.GUID) {
	if id := j.spec.DeviceByGUID(g); id != topospec.None && j.entered[id] > 0 {
		if j.entered[id]--; j.entered[id] == 0 && id != j.rooted {
			j.requeue(id)
		}
	}
}

func (j *Judge) requeue(id topospec.DeviceID) {
	if j.spec.Device(id).Kind == topospec.KindSwitch {
		j.queue = append(j.queue, id)
	}
}

// again judges the ports of switches that became verified, or are not any more.
// It works off a queue, since one verified switch may verify the next.
func (j *Judge) again() {
	if len(j.queue) == 0 || j.rejudging() {
		return
	}
	for i := 0; i < len(j.queue); i++ {
		id := j.queue[i]
		if id == topospec.None {
			continue
		}
		for _, slot := range j.spec.PortsOf(id) {
			rec := &j.ports[slot]
			if rec.seen.GUID != 0 && (rec.state == StateHeld || rec.state == StateVerified || rec.state == StateSeen || rec.state == StateDrift) {
				j.apply(rec, rec.seen)
			}
		}
	}
	j.queue = j.queue[:0]
}

// rejudging reports that the queue is being worked off further up; its first
// entry is marked then.
func (j *Judge) rejudging() bool {
	if j.queue[0] == topospec.None {
		return true
	}
	j.queue = append(j.queue, j.queue[0])
	j.queue[0] = topospec.None
	return false
}

// Changes hands out the transitions since the last call, in the order in which
// they happened. The slice is valid until the judge is told something.
func (j *Judge) Changes() []Change {
	c := j.changes
	j.changes = j.changes[:0]
	return c
}
