package verify

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// Seen is a fact: the device that answered behind a switch port. All fields but At are the device's own claims, in
// NodeInfo.
type Seen struct {
	At          ib.Place    // the switch port it answered behind
	GUID        ib.GUID     // node GUID
	Port        ib.PortNum  // its port at the cable, LocalPortNum
	Type        ib.NodeType // its claimed type
	NumPorts    uint8
	PortGUID    ib.GUID
	SystemImage ib.GUID
}

func (s *Seen) end() topospec.End { return topospec.End{GUID: s.GUID, Port: s.Port} }

// Ruling is the answer to a fact.
type Ruling struct {
	Verdict  Verdict
	Action   Action // by the mode in force
	Would    Action // what Enforce would do
	State    State
	Fields   Fields       // that differ
	Expected topospec.End // at this port, zero: nothing or not known
	Belongs  topospec.End // switch port at which the GUID seen must be, zero: nowhere
	Pair     ib.Place     // the other port of a swap
	Alarm    bool         // an operator must be alerted: the mode is above Observe and the link is not as specified
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
	backbone  int     // of these, links of which no tenant has an end
	lit       int     // links with an end of either kind

	changes []Change
	queue   []topospec.DeviceID // switches whose ports are judged again
}

// record is the recorded state of a port.
type record struct {
	seen    Seen
	verdict Verdict
	state   State
	was     bool // it was verified once
	steady  bool // it was verified, and the same has been seen since
	pair    ib.Place
	action  Action
}

// maxExtra bounds the recorded ports that the specification does not have, so that no device can fill the memory.
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
	j.verified, j.backbone, j.lit, j.rooted, j.queue = 0, 0, 0, topospec.None, nil
}

// Spec returns the specification in force.
func (j *Judge) Spec() *topospec.Spec { return j.spec }

// Mode returns the mode in force.
func (j *Judge) Mode() topospec.Mode { return j.mode }

// Verified returns how many links are verified, and Score their share of those that must be up.
func (j *Judge) Verified() int { return j.verified }

// Backbone returns how many of the verified links have no end at a tenant ([topospec.Spec.IsBackbone]).
func (j *Judge) Backbone() int { return j.backbone }

// Score returns verified links by expected links.
func (j *Judge) Score() topospec.Permille { return topospec.Share(j.verified, j.spec.NumActive()) }

// ErrRefused means that a guard said no.
var ErrRefused = errors.New("refused")

// SetMode puts a mode into force. Only an operator may do so, so by must name one, and Enforce needs the score of the
// policy. All facts are judged again, which costs a pass over the fabric: Changes reports which ports to disable or
// release.
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

// find returns the record of a port, nil if there is none.
func (j *Judge) find(at ib.Place) *record {
	if id := j.spec.SlotOf(topospec.EndAt(at)); id != topospec.None {
		return &j.ports[id]
	}
	return j.extra[at]
}

// recordOf returns the record of a port, nil when there are too many.
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

// act returns the action of the mode in force on a ruling, and sets its alarms.
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

// next returns the state that a ruling leads to.
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

// explain sets the verdict of the other half of a swap, and records the change.
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
	if more := number(j.isGood(i)) - number(wasGood); more != 0 {
		j.verified += more
		if j.spec.IsBackbone(i) {
			j.backbone += more
		}
	}
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

// Changes returns the transitions since the last call, in the order in which they happened. The slice is valid until the
// next call that changes the judge.
func (j *Judge) Changes() []Change {
	c := j.changes
	j.changes = j.changes[:0]
	return c
}
