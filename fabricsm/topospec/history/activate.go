package history

import (
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/diff"
	"portcullis/fabricsm/topospec/simulate"
)

// Step is a request to put a revision into force now, in a mode.
type Step struct {
	Number uint64
	Mode   topospec.Mode
	By     Person
	Why    string
	At     time.Time

	// Report is the simulation of the revision in the mode, against the fabric as it
	// is now.
	Report *simulate.Report
	// Active is the content of the revision in force, nil without one; Next that of
	// the one that is asked for.
	Active, Next *topospec.Spec
}

// Activate puts a draft into force, or the revision in force into another mode. No caller can overrule a guard that rejects
// it. Use another draft, or a milder mode.
func (h *History) Activate(in Step) error {
	e, err := h.find(in.Number)
	switch {
	case err != nil:
		return err
	case in.By == "" || in.Why == "":
		return fmt.Errorf("activate revision %d: %w: say who does it and why", in.Number, ErrRefused)
	case e.Status == Active:
		return h.turn(e, &in)
	case e.Status != Draft:
		return fmt.Errorf("activate revision %d: %w: it is %v%s", in.Number, ErrRefused, e.Status, elseways(e.Status))
	}
	if err := h.contents(e, &in); err != nil {
		return err
	}
	active := h.Active()
	switch {
	case active == nil && !e.Parent.IsZero() || active != nil && e.Parent != active.Digest:
		return fmt.Errorf("activate revision %d: %w: it was made from %s, which is not in force any more; draft it again", in.Number, ErrRefused, e.Parent.Short())
	case in.Report == nil:
		return fmt.Errorf("activate revision %d: %w: it was not simulated", in.Number, ErrRefused)
	case len(in.Report.Refused) > 0:
		return fmt.Errorf("activate revision %d: %w: %s; %s", in.Number, ErrRefused, in.Report.Refused[0].Text, in.Report.Refused[0].Do)
	}
	if missing := h.unapproved(in.Active, in.Next, e); missing != nil {
		return fmt.Errorf("activate revision %d: %w", in.Number, missing)
	}
	if active != nil {
		h.entries[h.active-1].Status = Superseded
	}
	h.put(e, &in)
	return nil
}

func elseways(s Status) string {
	if s == Superseded || s == RolledBack {
		return "; roll back to it"
	}
	return ""
}

// turn changes the mode of the revision in force. It was approved; its simulation reports the effects of a stronger mode.
func (h *History) turn(e *Entry, in *Step) error {
	switch {
	case in.Mode == e.Mode:
		return fmt.Errorf("activate revision %d: %w: it is in force in mode %v", e.Number, ErrRefused, e.Mode)
	case in.Mode > e.Mode && in.Report == nil:
		return fmt.Errorf("activate revision %d: %w: it was not simulated", e.Number, ErrRefused)
	case in.Mode > e.Mode && len(in.Report.Refused) > 0:
		return fmt.Errorf("activate revision %d: %w: %s; %s", e.Number, ErrRefused, in.Report.Refused[0].Text, in.Report.Refused[0].Do)
	}
	h.put(e, in)
	return nil
}

// put notes that an entry is in force.
func (h *History) put(e *Entry, in *Step) {
	e.Status, e.Activated, e.Mode, e.Why = Active, in.At, in.Mode, fmt.Sprintf("%s: %s", in.By, in.Why)
	h.active = slices.IndexFunc(h.entries, func(x Entry) bool { return x.Number == e.Number }) + 1
}

// contents rejects a step whose contents are not those of the entries.
func (h *History) contents(e *Entry, in *Step) error {
	if in.Next == nil {
		return fmt.Errorf("activate revision %d: %w: its content is missing", e.Number, ErrRefused)
	}
	if err := e.Check(in.Next); err != nil {
		return err
	}
	active := h.Active()
	if active == nil {
		return nil
	}
	if in.Active == nil {
		return fmt.Errorf("activate revision %d: %w: the content of revision %d is missing", e.Number, ErrRefused, active.Number)
	}
	return active.Check(in.Active)
}

// unapproved says which approval is missing. One person other than the author is always needed; two when the policy in
// force demands it for the change.
func (h *History) unapproved(active, next *topospec.Spec, e *Entry) error {
	persons, others := h.Rules.Count(e.Author, e.persons(e.Digest)), h.Rules.Others()
	needed, why := 1, fmt.Sprintf("a person %smust approve it", others)
	if touched := Touched(active, next); len(touched) > 0 {
		needed, why = 2, fmt.Sprintf("it touches %v: two persons %smust approve it", touched, others)
	}
	if persons < needed {
		return fmt.Errorf("%w: %s, %d did", ErrRefused, why, persons)
	}
	return nil
}

// Needed returns how many persons must approve a draft, by the policy in force, and how many did.
func (h *History) Needed(active, next *topospec.Spec, e *Entry) (needed, have int) {
	have = h.Rules.Count(e.Author, e.persons(topospec.Digest{}))
	if len(Touched(active, next)) > 0 {
		return 2, have
	}
	return 1, have
}

// Touched returns the kinds of changes of a revision that need two persons by the policy in force, or, when none is in
// force, by its own.
func Touched(active, next *topospec.Spec) []topospec.Touch {
	policy := &next.Revision().Policy
	if active != nil {
		policy = &active.Revision().Policy
	}
	var touched []topospec.Touch
	for t := topospec.TouchNewDevice; t <= topospec.TouchPolicy; t++ {
		if slices.Contains(policy.Two, t) && touches(active, next, t) {
			touched = append(touched, t)
		}
	}
	return touched
}

func touches(active, next *topospec.Spec, t topospec.Touch) bool {
	if active == nil {
		return true
	}
	if t == topospec.TouchPolicy {
		return slices.ContainsFunc(diff.Compare(active, next, diff.Everything).Items, func(i diff.Item) bool { return i.Kind == diff.PolicyChanged })
	}
	if t == topospec.TouchNewDevice && hasNewDevice(active, next) {
		return true
	}
	return linkTouched(active, next, t) || t == topospec.TouchServiceLink && linkTouched(next, active, t)
}

// hasNewDevice reports whether next has a device on the fabric that active does not allow: one that is unknown or retired
// there. A device without a link counts too. Otherwise the revision after next could add a link to it as a known device.
func hasNewDevice(active, next *topospec.Spec) bool {
	devices := next.Revision().Devices
	for i := range devices {
		d := &devices[i]
		id := active.DeviceByGUID(d.GUID)
		if id == topospec.None || active.Device(id).Stock == topospec.Retired && d.Stock != topospec.Retired {
			return true
		}
	}
	return false
}

// isServiceEnd reports whether an end of a link belongs to a service link, which needs two persons.
func isServiceEnd(s *topospec.Spec, l *topospec.Link, id topospec.DeviceID) bool {
	return l.Class == topospec.ClassService || s.Device(id).Role == topospec.RoleSM
}

// linkTouched reports whether b has a link of a kind that a has not.
func linkTouched(a, b *topospec.Spec, t topospec.Touch) bool {
	links := b.Revision().Links
	for i := range links {
		l := &links[i]
		old, peer := a.LinkAt(a.SlotOf(l.A))
		same := old != nil && peer == l.B && old.State == l.State
		if same && t != topospec.TouchServiceLink {
			continue
		}
		for _, e := range [2]topospec.End{l.A, l.B} {
			id := b.DeviceByGUID(e.GUID)
			if id == topospec.None {
				continue
			}
			was := a.DeviceByGUID(e.GUID)
			switch known := was != topospec.None; {
			case t == topospec.TouchNewDevice && !known:
				return true
			case t != topospec.TouchServiceLink || !isServiceEnd(b, l, id):
			case !same || !known || !isServiceEnd(a, old, was): // one that becomes an ordinary one, or begins to be
				return true
			}
		}
	}
	return false
}

// Rollback puts a revision that was in force into force again, without approval: it was approved once. Number 0 is the one
// before the present one. Under Enforce the guards of coverage and own path must hold, unless the caller must leave a
// revision that is worse (Report nil). The score does not count: lost links are a common reason for a rollback.
func (h *History) Rollback(in Step) (*Entry, error) {
	active := h.Active()
	if active == nil {
		return nil, fmt.Errorf("rollback: %w: nothing is in force", ErrRefused)
	}
	if in.By == "" || in.Why == "" {
		return nil, fmt.Errorf("rollback of revision %d: %w: say who does it and why", active.Number, ErrRefused)
	}
	e, err := h.target(active, in.Number)
	if err != nil {
		return nil, err
	}
	if in.Report != nil && in.Mode == topospec.Enforce {
		for _, r := range in.Report.Refused {
			if r.Guard == simulate.GuardCoverage || r.Guard == simulate.GuardOwnPath {
				return nil, fmt.Errorf("rollback to revision %d: %w: %s; %s; or roll back in a milder mode", e.Number, ErrRefused, r.Text, r.Do)
			}
		}
	}
	left := &h.entries[h.active-1]
	left.Status, left.Why = RolledBack, fmt.Sprintf("%s: %s", in.By, in.Why)
	h.put(e, &in)
	c := *e
	return &c, nil
}

// Target returns the entry that a rollback to a revision would put into force; 0: the one before the present one.
func (h *History) Target(number uint64) (*Entry, error) {
	active := h.Active()
	if active == nil {
		return nil, fmt.Errorf("rollback: %w: nothing is in force", ErrRefused)
	}
	e, err := h.target(active, number)
	if err != nil {
		return nil, err
	}
	c := *e
	return &c, nil
}

func (h *History) target(active *Entry, number uint64) (*Entry, error) {
	if number == 0 {
		before := h.Before()
		if before == nil {
			return nil, fmt.Errorf("rollback: %w: nothing that is kept was in force before revision %d", ErrRefused, active.Number)
		}
		number = before.Number
	}
	e, err := h.find(number)
	switch {
	case err != nil:
		return nil, err
	case e.Status == Active:
		return nil, fmt.Errorf("rollback to revision %d: %w: it is in force", number, ErrRefused)
	case e.Status != Superseded && e.Status != RolledBack:
		return nil, fmt.Errorf("rollback to revision %d: %w: it is %v and was never in force; activate it", number, ErrRefused, e.Status)
	}
	return e, nil
}

// Worse reports whether a fabric under a new revision verifies fewer links than its simulation predicted, by more than an
// allowance for links that come and go by themselves: a rollback is due.
func Worse(foretold, after, allowance int) bool { return after < foretold-allowance }
