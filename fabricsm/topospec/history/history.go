// Package history keeps the revisions of a fabric: who drafted, approved, activated
// and rolled back which, each named by the digest of its content and of its parent.
// It decides nothing by the clock and stores nothing: times are given, and what it
// holds can be written down and taken up again by the caller.
package history

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/diff"
	"portcullis/fabricsm/topospec/simulate"
)

// Status is where a revision is in its life.
type Status uint8

// Statuses. A draft that is activated makes the one before it superseded; the one
// that a rollback leaves is rolled back.
const (
	Draft Status = iota
	Active
	Superseded
	RolledBack
	Rejected
)

var statusNames = []string{"draft", "active", "superseded", "rolled_back", "rejected"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// MarshalText gives the name.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name.
func (s *Status) UnmarshalText(b []byte) error {
	for i, name := range statusNames {
		if name == string(b) {
			*s = Status(i)
			return nil
		}
	}
	return fmt.Errorf("status %.40q: want one of %q", b, statusNames)
}

// Person is who acts, as the service has authenticated them.
type Person string

// Approval is one person's word for exactly one content.
type Approval struct {
	By     Person          `json:"by"`
	At     time.Time       `json:"at"`
	Digest topospec.Digest `json:"digest"`
}

// Entry is one revision in the history.
type Entry struct {
	Number    uint64          `json:"revision"`
	Digest    topospec.Digest `json:"digest"`
	Parent    topospec.Digest `json:"parent"`
	Author    Person          `json:"author"`
	Status    Status          `json:"status"`
	Approvals []Approval      `json:"approvals,omitempty"`
	Activated time.Time       `json:"activated,omitzero"`
	Why       string          `json:"why,omitempty"` // of a rejection or rollback
}

// History is the chain of one fabric. The zero History is that of a fabric without
// a revision.
type History struct {
	entries []Entry
	specs   map[topospec.Digest]*topospec.Spec
	active  int // index + 1, 0: none
}

// MaxEntries bounds the revisions that are kept.
const MaxEntries = 10_000

// Errors of the package.
var (
	ErrRefused  = errors.New("refused")
	ErrNotFound = errors.New("no such revision")
)

// Active gives the revision in force and its entry, nil if there is none.
func (h *History) Active() (*topospec.Spec, *Entry) {
	if h.active == 0 {
		return nil, nil
	}
	e := h.entries[h.active-1]
	return h.specs[e.Digest], &e
}

// Entries gives all entries, the oldest first.
func (h *History) Entries() []Entry { return slices.Clone(h.entries) }

// Restore takes up a history that was written down: its chain must hold, and the
// content of every entry must be what its digest says.
func Restore(entries []Entry, content func(topospec.Digest) *topospec.Spec) (*History, error) {
	h := &History{specs: map[topospec.Digest]*topospec.Spec{}}
	for i, e := range entries {
		s := content(e.Digest)
		switch {
		case s == nil:
			return nil, fmt.Errorf("revision %d: its content is missing", e.Number)
		case s.Digest() != e.Digest || s.Revision().Number != e.Number || s.Revision().Parent != e.Parent:
			return nil, fmt.Errorf("revision %d: its content is not what its digest %s says", e.Number, e.Digest.Short())
		case i > 0 && e.Number <= entries[i-1].Number:
			return nil, fmt.Errorf("revision %d: it comes after %d", e.Number, entries[i-1].Number)
		case !e.Parent.IsZero() && h.specs[e.Parent] == nil:
			return nil, fmt.Errorf("revision %d: its parent %s is not in the history", e.Number, e.Parent.Short())
		case e.Status == Active && h.active != 0:
			return nil, fmt.Errorf("revision %d: revision %d is active, too", e.Number, h.entries[h.active-1].Number)
		}
		e.Approvals = slices.Clone(e.Approvals)
		h.entries, h.specs[e.Digest] = append(h.entries, e), s
		if e.Status == Active {
			h.active = i + 1
		}
	}
	return h, nil
}

// Draft takes a revision that somebody wrote. It gets the next number and the
// revision in force as its parent, whatever the file says; what it gives is the
// digest that approvals are for.
func (h *History) Draft(r *topospec.Revision, author Person) (*topospec.Spec, error) {
	if author == "" {
		return nil, fmt.Errorf("draft: %w: say who wrote it", ErrRefused)
	}
	if len(h.entries) >= MaxEntries {
		return nil, fmt.Errorf("draft: %w: %d revisions are kept, no more", ErrRefused, MaxEntries)
	}
	next := r.Clone()
	next.Number, next.Parent = 1, topospec.Digest{}
	if n := len(h.entries); n > 0 {
		next.Number = h.entries[n-1].Number + 1
	}
	if _, e := h.Active(); e != nil {
		next.Parent = e.Digest
	}
	s, err := topospec.Compile("draft", next)
	if err != nil {
		return nil, err
	}
	if h.specs == nil {
		h.specs = map[topospec.Digest]*topospec.Spec{}
	}
	h.specs[s.Digest()] = s
	h.entries = append(h.entries, Entry{Number: next.Number, Digest: s.Digest(), Parent: next.Parent, Author: author})
	return s, nil
}

func (h *History) find(number uint64) (*Entry, error) {
	i := slices.IndexFunc(h.entries, func(e Entry) bool { return e.Number == number })
	if i < 0 {
		return nil, fmt.Errorf("revision %d: %w", number, ErrNotFound)
	}
	return &h.entries[i], nil
}

// Approve notes a person's word for a draft. digest is that of what they saw.
func (h *History) Approve(number uint64, digest topospec.Digest, by Person, at time.Time) error {
	e, err := h.find(number)
	switch {
	case err != nil:
		return err
	case by == "":
		return fmt.Errorf("approve revision %d: %w: say who does", number, ErrRefused)
	case e.Status != Draft:
		return fmt.Errorf("approve revision %d: %w: it is %v", number, ErrRefused, e.Status)
	case digest != e.Digest:
		return fmt.Errorf("approve revision %d: %w: what was looked at is %s, the draft is %s; look again", number, ErrRefused, digest.Short(), e.Digest.Short())
	case slices.ContainsFunc(e.Approvals, func(a Approval) bool { return a.By == by }):
		return fmt.Errorf("approve revision %d: %w: %s has approved it", number, ErrRefused, by)
	}
	e.Approvals = append(e.Approvals, Approval{by, at, digest})
	return nil
}

// Reject ends a draft.
func (h *History) Reject(number uint64, by Person, why string) error {
	e, err := h.find(number)
	if err != nil {
		return err
	}
	if e.Status != Draft || by == "" || why == "" {
		return fmt.Errorf("reject revision %d: %w: it is %v; only a draft is rejected, by somebody, for a reason", number, ErrRefused, e.Status)
	}
	e.Status, e.Why = Rejected, fmt.Sprintf("%s: %s", by, why)
	return nil
}

// Activate puts a draft into force. report is the simulation against the fabric as
// it is now. Guards that refuse can be overruled by nobody here: they are answered
// by another draft. Times are the caller's.
func (h *History) Activate(number uint64, report *simulate.Report, at time.Time) (*topospec.Spec, error) {
	e, err := h.find(number)
	if err != nil {
		return nil, err
	}
	active, in := h.Active()
	switch {
	case e.Status != Draft:
		return nil, fmt.Errorf("activate revision %d: %w: it is %v", number, ErrRefused, e.Status)
	case in == nil && !e.Parent.IsZero() || in != nil && e.Parent != in.Digest:
		return nil, fmt.Errorf("activate revision %d: %w: it was made from %s, which is not in force any more; draft it again", number, ErrRefused, e.Parent.Short())
	case report == nil:
		return nil, fmt.Errorf("activate revision %d: %w: it was not simulated", number, ErrRefused)
	case len(report.Refused) > 0:
		return nil, fmt.Errorf("activate revision %d: %w: %s; %s", number, ErrRefused, report.Refused[0].Text, report.Refused[0].Do)
	}
	if missing := h.unapproved(active, e); missing != nil {
		return nil, fmt.Errorf("activate revision %d: %w", number, missing)
	}
	if in != nil {
		h.entries[h.active-1].Status = Superseded
	}
	e.Status, e.Activated = Active, at
	h.active = slices.IndexFunc(h.entries, func(x Entry) bool { return x.Number == number }) + 1
	return h.specs[e.Digest], nil
}

// unapproved says which approval is missing. One person other than the author is
// always needed but for the very first revision; two when the change touches what
// the policy in force says. The author never counts.
func (h *History) unapproved(active *topospec.Spec, e *Entry) error {
	persons := 0
	for _, a := range e.Approvals {
		if a.By != e.Author && a.Digest == e.Digest {
			persons++
		}
	}
	needed, why := 1, "somebody other than its author must approve it"
	if touched := Touched(active, h.specs[e.Digest]); len(touched) > 0 {
		needed, why = 2, fmt.Sprintf("it touches %v: two persons other than its author must approve it", touched)
	}
	if persons < needed {
		return fmt.Errorf("%w: %s, %d did", ErrRefused, why, persons)
	}
	return nil
}

// Touched gives the kinds of changes of a revision that need two persons by the
// policy in force, or, when none is in force, by its own.
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
	return linkTouched(active, next, t) || t == topospec.TouchServiceLink && linkTouched(next, active, t)
}

// linkTouched reports a link of b that a has not, and that is of a kind.
func linkTouched(a, b *topospec.Spec, t topospec.Touch) bool {
	links := b.Revision().Links
	for i := range links {
		l := &links[i]
		old, peer := a.LinkAt(a.SlotOf(l.A))
		if old != nil && peer == l.B && old.State == l.State {
			continue
		}
		for _, e := range [2]topospec.End{l.A, l.B} {
			id := b.DeviceByGUID(e.GUID)
			if id == topospec.None {
				continue
			}
			known := a.DeviceByGUID(e.GUID) != topospec.None
			if t == topospec.TouchNewDevice && !known || t == topospec.TouchServiceLink && (l.Class == topospec.ClassService || b.Device(id).Role == topospec.RoleSM) {
				return true
			}
		}
	}
	return false
}

// Rollback puts the revision that was in force before the present one into force
// again, without approval: it was approved once. report is its simulation against
// the fabric as it is now; the guards of score, coverage and own path must hold,
// unless the caller must get out of a revision that is worse (report nil).
func (h *History) Rollback(by Person, why string, report *simulate.Report, at time.Time) (*topospec.Spec, error) {
	_, in := h.Active()
	if in == nil || in.Parent.IsZero() {
		return nil, fmt.Errorf("rollback: %w: nothing was in force before", ErrRefused)
	}
	if by == "" || why == "" {
		return nil, fmt.Errorf("rollback of revision %d: %w: say who does it and why", in.Number, ErrRefused)
	}
	i := slices.IndexFunc(h.entries, func(e Entry) bool { return e.Digest == in.Parent })
	if report != nil {
		for _, r := range report.Refused {
			if r.Guard == simulate.GuardScore || r.Guard == simulate.GuardCoverage || r.Guard == simulate.GuardOwnPath {
				return nil, fmt.Errorf("rollback to revision %d: %w: %s; %s", h.entries[i].Number, ErrRefused, r.Text, r.Do)
			}
		}
	}
	left := &h.entries[h.active-1]
	left.Status, left.Why = RolledBack, fmt.Sprintf("%s: %s", by, why)
	h.entries[i].Status, h.entries[i].Activated = Active, at
	h.active = i + 1
	return h.specs[h.entries[i].Digest], nil
}

// Worse reports that a fabric under a new revision verifies fewer links than
// before by more than the flips that its simulation foretold: a rollback is due.
func Worse(before, after int, report *simulate.Report) bool { return after < before-report.Flips }
