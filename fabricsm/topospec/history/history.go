// Package history holds the rules by which revisions of a fabric come into force. It records the author, approvals,
// activations and rollbacks of each, named by the digest of its content and of its parent. It has no clock and no storage:
// times and contents are arguments, and the caller can store a history and restore it.
package history

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/approval"
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

// MarshalText returns the name.
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

// Person is the acting person, as authenticated by the service.
type Person = approval.Person

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
	Parent    topospec.Digest `json:"parent"` // in force when it was drafted; zero: none was
	Author    Person          `json:"author"`
	Drafted   time.Time       `json:"drafted"`
	Status    Status          `json:"status"`
	Approvals []Approval      `json:"approvals,omitempty"`
	Mode      topospec.Mode   `json:"mode"` // that it was last in force in
	Activated time.Time       `json:"activated,omitzero"`
	Why       string          `json:"why,omitempty"` // of the last step of its life
}

// persons returns the persons that approved a revision, with a digest: its content of that digest; zero: any.
func (e *Entry) persons(of topospec.Digest) (by []Person) {
	for i := range e.Approvals {
		if a := &e.Approvals[i]; of.IsZero() || a.Digest == of {
			by = append(by, a.By)
		}
	}
	return by
}

// History is the chain of one fabric. The zero History is that of a fabric without
// a revision.
type History struct {
	Rules   approval.Rule
	entries []Entry
	active  int // index + 1, 0: none
}

// Limits of a history.
const (
	MaxEntries = 10_000
	MaxDrafts  = 32 // that wait for approval or activation
)

// Errors of the package.
var (
	ErrRefused  = errors.New("refused")
	ErrNotFound = errors.New("no such revision")
)

// Active returns the entry of the revision in force, nil if there is none.
func (h *History) Active() *Entry {
	if h.active == 0 {
		return nil
	}
	e := h.entries[h.active-1]
	return &e
}

// Before returns the entry that was in force before the present one, nil if there is none, or it is not kept any more.
func (h *History) Before() *Entry {
	in := h.Active()
	if in == nil || in.Parent.IsZero() {
		return nil
	}
	i := slices.IndexFunc(h.entries, func(e Entry) bool { return e.Digest == in.Parent })
	if i < 0 {
		return nil
	}
	e := h.entries[i]
	return &e
}

// Entries returns all entries, the oldest first.
func (h *History) Entries() []Entry { return slices.Clone(h.entries) }

// Find returns the entry of a revision.
func (h *History) Find(number uint64) (*Entry, error) {
	e, err := h.find(number)
	if err != nil {
		return nil, err
	}
	c := *e
	c.Approvals = slices.Clone(e.Approvals)
	return &c, nil
}

func (h *History) find(number uint64) (*Entry, error) {
	i := slices.IndexFunc(h.entries, func(e Entry) bool { return e.Number == number })
	if i < 0 {
		return nil, fmt.Errorf("revision %d: %w", number, ErrNotFound)
	}
	return &h.entries[i], nil
}

// Restore restores a history from stored entries. Entries that were dropped (see Prune) may be missing.
func Restore(rules approval.Rule, entries []Entry) (*History, error) {
	h := &History{Rules: rules, entries: make([]Entry, 0, len(entries))}
	for i, e := range entries {
		switch {
		case e.Number == 0 || e.Digest.IsZero():
			return nil, fmt.Errorf("entry %d of the history of revisions has no number or no digest", i+1)
		case i > 0 && e.Number <= entries[i-1].Number:
			return nil, fmt.Errorf("revision %d: it comes after %d", e.Number, entries[i-1].Number)
		case e.Status == Active && h.active != 0:
			return nil, fmt.Errorf("revision %d: revision %d is active, too", e.Number, h.entries[h.active-1].Number)
		}
		e.Approvals = slices.Clone(e.Approvals)
		h.entries = append(h.entries, e)
		if e.Status == Active {
			h.active = i + 1
		}
	}
	return h, nil
}

// Check rejects a content that is not that of an entry.
func (e *Entry) Check(s *topospec.Spec) error {
	if s.Digest() != e.Digest || s.Revision().Number != e.Number || s.Revision().Parent != e.Parent {
		return fmt.Errorf("revision %d: its content is not what its digest %s says", e.Number, e.Digest.Short())
	}
	return nil
}

// Draft adds a revision from its author. It gets the next number and the revision in force as its parent, whatever the file
// says. Draft returns the content that approvals are for. source names the file in errors.
func (h *History) Draft(source string, r *topospec.Revision, author Person, at time.Time) (*topospec.Spec, error) {
	s, err := h.Compile(source, r)
	if err != nil {
		return nil, err
	}
	return s, h.Add(s, author, at)
}

// Compile compiles a revision from its author to the content that Add takes.
func (h *History) Compile(source string, r *topospec.Revision) (*topospec.Spec, error) {
	next := r.Clone()
	next.Number, next.Parent = h.next()
	return topospec.Compile(source, next)
}

// next returns number and parent of the next draft.
func (h *History) next() (number uint64, parent topospec.Digest) {
	number = 1
	if n := len(h.entries); n > 0 {
		number = h.entries[n-1].Number + 1
	}
	if e := h.Active(); e != nil {
		parent = e.Digest
	}
	return number, parent
}

// ErrMoved means that a draft was compiled for a history that has moved on since.
var ErrMoved = errors.New("the history moved on")

// Add adds a draft that Compile made.
func (h *History) Add(s *topospec.Spec, author Person, at time.Time) error {
	drafts := 0
	for i := range h.entries {
		if h.entries[i].Status == Draft {
			drafts++
		}
	}
	number, parent := h.next()
	r := s.Revision()
	switch {
	case author == "":
		return fmt.Errorf("draft: %w: say who wrote it", ErrRefused)
	case len(h.entries) >= MaxEntries:
		return fmt.Errorf("draft: %w: %d revisions are kept, no more", ErrRefused, MaxEntries)
	case drafts >= MaxDrafts:
		return fmt.Errorf("draft: %w: %d drafts wait for approval, no more may; reject those that are not wanted", ErrRefused, drafts)
	case r.Number != number || r.Parent != parent:
		return fmt.Errorf("draft: %w: compile it again", ErrMoved)
	}
	h.entries = append(h.entries, Entry{Number: number, Digest: s.Digest(), Parent: parent, Author: author, Drafted: at})
	return nil
}

// Approve records a person's approval of a draft. digest is that of the content that the person saw.
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
	case !h.Rules.Allows(e.Author, by):
		return fmt.Errorf("approve revision %d: %w: %s wrote it; another person must approve it", number, ErrRefused, by)
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
		return fmt.Errorf("reject revision %d: %w: it is %v; only a draft is rejected, by a person, for a reason", number, ErrRefused, e.Status)
	}
	e.Status, e.Why = Rejected, fmt.Sprintf("%s: %s", by, why)
	return nil
}

// Prune removes the oldest entries so that no more than keep are left, and returns them. It never removes a draft, the
// revision in force, or the one before it.
func (h *History) Prune(keep int) (dropped []Entry) {
	in, before := h.Active(), h.Before()
	excess := len(h.entries) - keep
	kept := h.entries[:0:0]
	for _, e := range h.entries {
		bound := e.Status == Draft || in != nil && e.Number == in.Number || before != nil && e.Number == before.Number
		if len(dropped) < excess && !bound && e.Number != h.entries[len(h.entries)-1].Number {
			dropped = append(dropped, e)
			continue
		}
		kept = append(kept, e)
	}
	h.entries = kept
	h.active = slices.IndexFunc(h.entries, func(e Entry) bool { return e.Status == Active }) + 1
	return dropped
}
