package chain

import (
	"errors"
	"fmt"
	"time"
)

// AcceptAction is the action of the entry by which an operator accepts a break of the log. The break stays in the log, and
// so does the entry.
const AcceptAction = "audit.accept-break"

// Acceptance is what such an entry says of a break.
type Acceptance struct {
	Cause    string
	From, To Head // of Break; without Branch
	Entry    uint64
	Time     time.Time
	Actor    string
	Detail   string
}

// Accept returns the entry by which an actor accepts the break. It has the head up to which the log was verified, and the one
// from which it goes on.
func (b *Break) Accept(now time.Time, actor, reason string) Entry {
	return Entry{
		Time: now, Actor: actor, Action: AcceptAction, Object: fmt.Sprintf("audit/%d-%d", b.From.Seq, b.To.Seq), Code: b.Cause,
		Detail: fmt.Sprintf("%s; %s; from entry %d with hash %s to entry %d with hash %s", reason, b.Text, b.From.Seq, orNone(b.From.Hash), b.To.Seq, orNone(b.To.Hash)),
		Before: b.From.Hash, After: b.To.Hash,
	}
}

func orNone(hash string) string {
	if hash == "" {
		return "none"
	}
	return hash
}

// AcceptanceOf returns what an entry accepts; false: it is of another action, or malformed.
func AcceptanceOf(e *Entry) (Acceptance, bool) {
	a := Acceptance{
		Cause: e.Code, From: Head{Hash: e.Before}, To: Head{Hash: e.After}, Entry: e.Seq, Time: e.Time, Actor: e.Actor, Detail: e.Detail,
	}
	if e.Action != AcceptAction {
		return a, false
	}
	n, err := fmt.Sscanf(e.Object, "audit/%d-%d", &a.From.Seq, &a.To.Seq)
	return a, err == nil && n == 2 && e.Object == fmt.Sprintf("audit/%d-%d", a.From.Seq, a.To.Seq)
}

// of reports whether a accepts the break.
func (a *Acceptance) of(b *Break) bool {
	return a.Cause == b.Cause && a.From == b.From.place() && a.To == b.To.place()
}

// place returns the head without its branch, which does not name an entry.
func (h Head) place() Head { return Head{Seq: h.Seq, Hash: h.Hash} }

const (
	// MaxBreaks bounds the breaks of a log that are collected.
	MaxBreaks = 100
	// maxAccepted bounds the acceptances.
	maxAccepted = 10 * MaxBreaks
)

// Log verifies a whole log, and goes on behind each break of it, to find others and those that operators accepted. The zero
// Log is before the first entry.
type Log struct {
	chain    Chain
	breaks   []Break
	accepted []Acceptance
	spoiled  string // what is wrong with the record before the next entry; empty: nothing
}

// Add takes the record at a place of the log, and reports whether it is the entry that was written there. A nil entry is a
// record that cannot be read. The error is none about the log.
func (l *Log) Add(place uint64, e *Entry) (fits bool, _ error) {
	switch {
	case e == nil:
		l.spoil(fmt.Sprintf("audit entry %d was altered: it cannot be read", place))
		return false, nil
	case e.Seq != place:
		l.spoil(fmt.Sprintf("audit entry %d is missing: found %d in its place", place, e.Seq))
		return false, nil
	}
	if end := l.chain.Head(); l.spoiled != "" && e.Seq == end.Seq+1 && e.Prev == end.Hash {
		l.extra() // nothing is missing: there is one record more
	}
	err := l.chain.Add(e)
	b, is := errors.AsType[*Break](err)
	if err != nil && !is {
		return false, err
	}
	if b == nil {
		l.note(e)
		return true, nil
	}
	l.found(b)
	if b.To.Seq == e.Seq { // its content was altered
		return false, nil
	}
	return l.Add(place, e) // it follows the end of the break, or was altered, too
}

// spoil notes a record that is no entry. The break is found with the entry behind it.
func (l *Log) spoil(text string) {
	if l.spoiled == "" {
		l.spoiled = text
	}
}

// extra is the break of a record that stands between two entries which follow each other.
func (l *Log) extra() {
	end := l.chain.Head()
	l.found(&Break{Seq: end.Seq + 1, From: end, To: end})
}

func (l *Log) found(b *Break) {
	if l.spoiled != "" {
		b.Cause, b.Text, l.spoiled = Altered, l.spoiled, ""
	}
	if len(l.breaks) < MaxBreaks {
		l.breaks = append(l.breaks, *b)
	}
	l.chain.head = b.To
}

func (l *Log) note(e *Entry) {
	if a, ok := AcceptanceOf(e); ok && len(l.accepted) < maxAccepted {
		l.accepted = append(l.accepted, a)
	}
}

// Head returns the last entry, and behind a break where the log goes on.
func (l *Log) Head() Head { return l.chain.Head() }

// End verifies that the log ends at head.
func (l *Log) End(head Head) {
	if b, is := errors.AsType[*Break](l.chain.End(head)); is {
		l.found(b)
	} else if l.spoiled != "" {
		l.extra()
	}
}

// Breaks returns the breaks of the log, in its order, MaxBreaks at most, each with how it was accepted, if it was. A log that was
// rolled back is whole in itself; how that was accepted is in Accepted alone.
func (l *Log) Breaks() []Found {
	out := make([]Found, 0, len(l.breaks))
	for i := range l.breaks {
		f := Found{Break: l.breaks[i]}
		for n := range l.accepted {
			if l.accepted[n].of(&f.Break) {
				f.Accepted = &l.accepted[n]
				break
			}
		}
		out = append(out, f)
	}
	return out
}

// Found is a break of a log.
type Found struct {
	Break
	Accepted *Acceptance // nil: it was not
}

// Accepted returns what operators accepted, in the order of the log.
func (l *Log) Accepted() []Acceptance { return l.accepted }

// Open returns the first break that no operator accepted, nil if there is none.
func (l *Log) Open() *Break {
	for _, f := range l.Breaks() {
		if f.Accepted == nil {
			return &f.Break
		}
	}
	return nil
}
