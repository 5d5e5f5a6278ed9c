package spool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"portcullis/api/fabric/timeline"
)

// Known says of which times the table is known.
type Known struct {
	From, Until time.Time // zero: nothing is known
	Changed     time.Time // the last change; zero: there is none
	Gaps        []Gap     // between the two
	Short       bool      // earlier times were removed because there is room for no more
	Why         string    // nothing is known since Until; empty: nothing says so
	Failed      string    // why nothing is written now; empty: it is, or was not tried yet
	Marks       []Mark
}

// Mark counts the changes in one minute.
type Mark struct {
	Time    time.Time // when the minute begins
	Changes int
}

// Known says what is known, with the changes that count for a class.
func (s *Spool) Known(now time.Time, class Class) Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Known{Failed: s.failed}
	if len(s.parts) == 0 {
		return out
	}
	oldest := s.parts[0]
	out.From, out.Until = oldest.first, s.until()
	out.Short = out.From.After(now.Add(-s.o.Keep)) && (!s.short.IsZero() || oldest.sort == timeline.Continues)
	if out.Gaps = s.gaps(); len(out.Gaps) > 0 && out.Gaps[len(out.Gaps)-1].Until.IsZero() {
		out.Why = out.Gaps[len(out.Gaps)-1].Why
		out.Gaps = out.Gaps[:len(out.Gaps)-1]
	}
	for _, p := range s.parts {
		if last := p.bounds[class].last; !last.IsZero() {
			out.Changed = last
		}
		for _, m := range p.marks {
			if m.changes[class] == 0 {
				continue
			}
			at := time.Unix(60*m.minute, 0).UTC()
			if n := len(out.Marks); n > 0 && out.Marks[n-1].Time.Equal(at) {
				out.Marks[n-1].Changes += m.changes[class]
				continue
			}
			out.Marks = append(out.Marks, Mark{Time: at, Changes: m.changes[class]})
		}
	}
	return out
}

// until returns up to when the table is known, or was known last.
func (s *Spool) until() time.Time {
	p := s.newest()
	if s.looked.After(p.last) {
		return s.looked
	}
	return p.last
}

// gaps returns all gaps in the order of time. The last one has no end where nothing is known now.
func (s *Spool) gaps() []Gap {
	var out []Gap
	for i, p := range s.parts {
		if i > 0 && !p.follows(s.parts[i-1]) {
			before := s.parts[i-1]
			g := Gap{From: before.last, Until: p.first, Why: p.before()}
			if n := len(out); n > 0 && out[n-1].Until.IsZero() { // it ended before, with a reason
				g.From, g.Why = out[n-1].From, out[n-1].Why
				out = out[:n-1]
			}
			out = append(out, g)
		}
		out = append(out, p.gaps...)
	}
	return out
}

// Moment is the table at a time.
type Moment struct {
	Table *timeline.State // nil: it is not known
	Why   string          // it is not known
	// Previous is the last change before the time, and Next the first one after it; zero: there is none.
	Previous, Next time.Time
}

// At returns the table at a time, and the nearest changes that count for a class.
func (s *Spool) At(ctx context.Context, at time.Time, class Class) (*Moment, error) {
	at = at.UTC().Truncate(time.Millisecond)
	s.mu.Lock()
	i, _ := slices.BinarySearchFunc(s.parts, at, func(p *part, at time.Time) int {
		if p.first.After(at) {
			return 1
		}
		return -1
	})
	i-- // the last one that begins at the time or earlier
	out := &Moment{}
	for _, p := range s.parts[:max(0, i)] {
		if b := p.bounds[class]; !b.last.IsZero() {
			out.Previous = b.last
		}
	}
	for _, p := range slices.Backward(s.parts[i+1:]) {
		if b := p.bounds[class]; !b.first.IsZero() {
			out.Next = b.first
		}
	}
	if i < 0 {
		out.Why = "nothing was recorded so early"
		s.mu.Unlock()
		return out, nil
	}
	p := s.parts[i]
	out.Why = s.unknown(i, at)
	last := p.last
	s.mu.Unlock()

	data, done, err := s.load(ctx, p)
	if err != nil {
		return nil, err
	}
	defer done()
	r := timeline.NewReader(data)
	passed := false // an event after the time was read, or the last one that was written
	for {
		e, err := r.Next()
		if err != nil {
			passed = passed || !r.Time().Before(last)
			break
		}
		passed = passed || e.Time.After(at)
		if !s.counts(e, class) {
			continue
		}
		if e.Time.Before(at) {
			out.Previous = e.Time
		} else if e.Time.After(at) {
			out.Next = e.Time
			break
		}
	}
	if out.Why != "" {
		return out, nil
	}
	then := timeline.At(data, at)
	if !passed || then == nil || !then.Known() {
		out.Why = "what was recorded of that time cannot be read"
		return out, nil
	}
	out.Table = then.State()
	return out, nil
}

// noWord is why nothing is known where nothing else says so.
const noWord = "nothing was recorded then"

// unknown returns why nothing is known of a time that is not before the beginning of a part; empty: it is known.
func (s *Spool) unknown(i int, at time.Time) string {
	p := s.parts[i]
	for _, g := range p.gaps {
		if !at.Before(g.From) && (g.Until.IsZero() || at.Before(g.Until)) {
			return cmp.Or(g.Why, noWord)
		}
	}
	switch {
	case !at.After(p.last):
		return ""
	case i+1 < len(s.parts):
		if next := s.parts[i+1]; !next.follows(p) {
			return next.before()
		}
		return ""
	case at.After(s.until()):
		return noWord
	}
	return ""
}

// counts reports whether an event has a change that counts for a class.
func (s *Spool) counts(e *timeline.Event, class Class) bool {
	return e.Sort == timeline.Changed && slices.ContainsFunc(e.Changes, func(c timeline.Change) bool { return s.seen(c.Kind, class) })
}

func (s *Spool) seen(k timeline.Kind, class Class) bool {
	c := s.o.Class(k)
	return c != None && c <= class
}

// load reads a segment. done is to be called once its bytes are needed no more.
func (s *Spool) load(ctx context.Context, p *part) (data []byte, done func(), err error) {
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	data, err = p.load()
	if err != nil {
		<-s.turns
		if errors.Is(err, os.ErrNotExist) {
			err = errGone
		}
		return nil, nil, fmt.Errorf("read how the fabric was: %w", err)
	}
	return data, func() { <-s.turns }, nil
}

// Position is where a list of changes goes on: behind the first Skip changes of the event at Time.
type Position struct {
	Time time.Time
	Skip int
}

// Dated is a change and its time.
type Dated struct {
	Time time.Time
	timeline.Change
}

// Changes returns the changes from a position to a time, that time included, which count for a class: limit of them at most. next is where the rest
// begins; nil: there is no more.
func (s *Spool) Changes(ctx context.Context, from Position, until time.Time, class Class, limit int) (all []Dated, next *Position, err error) {
	type span struct {
		*part
		bounds
	}
	s.mu.Lock()
	var parts []span
	for _, p := range s.parts {
		if b := p.bounds[class]; !b.first.IsZero() && !b.last.Before(from.Time) && !b.first.After(until) {
			parts = append(parts, span{p, b})
		}
	}
	s.mu.Unlock()
	for _, p := range parts {
		if len(all) >= limit {
			return all, &Position{Time: p.bounds.first}, nil
		}
		if next, err = s.changesOf(ctx, p.part, p.bounds.last, from, until, class, limit, &all); err != nil && !errors.Is(err, errGone) {
			return nil, nil, err
		}
		if next != nil {
			return all, next, nil
		}
	}
	return all, nil, nil
}

// changesOf appends the changes of one segment, whose last one is at a time.
func (s *Spool) changesOf(ctx context.Context, p *part, last time.Time, from Position, until time.Time, class Class, limit int, all *[]Dated) (*Position, error) {
	data, done, err := s.load(ctx, p)
	if err != nil {
		return nil, err
	}
	defer done()
	r := timeline.NewReader(data)
	for {
		e, err := r.Next()
		switch {
		case err != nil: // io.EOF, or what was not written whole
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if r.Time().Before(last) {
				return nil, fmt.Errorf("read how the fabric was: %s was altered behind what was recorded at %v: %w", p.path, r.Time(), err)
			}
			return nil, nil
		case e.Time.After(until):
			return nil, nil
		case e.Time.Before(from.Time) || e.Sort != timeline.Changed:
			continue
		}
		n := 0
		for _, c := range e.Changes {
			if !s.seen(c.Kind, class) {
				continue
			}
			n++
			if e.Time.Equal(from.Time) && n <= from.Skip {
				continue
			}
			if len(*all) == limit {
				return &Position{Time: e.Time, Skip: n - 1}, nil
			}
			*all = append(*all, Dated{e.Time, c})
		}
	}
}
