package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"portcullis/api/fabric/timeline"
)

// Options are what a Spool is made of. All are required.
type Options struct {
	Dir  string        // is made if it is not there; nothing else is in it
	Keep time.Duration // how old a segment may get
	Size int64         // bytes of all segments, at most; one segment more for a moment
	// Class says which readers a change of a row of a kind counts for.
	Class func(timeline.Kind) Class
}

// Class says which readers changes count for.
type Class uint8

// Classes. A reader of the class Confined sees changes for All, too.
const (
	None Class = iota
	All
	Confined
	classes
)

const (
	suffix = ".timeline"
	// rollAfter is how old a segment gets before the next one is begun.
	rollAfter = time.Hour
	// rollStep is the time from the last event of a segment to the next one that goes on with it.
	rollStep = time.Millisecond
	// rollSize is how many bytes of changes a segment takes, or as many as its table takes if these are more.
	rollSize = 1 << 20
	// most is how many bytes of one file are read.
	most = 64 << 20
	// readers is how many segments are read at a time.
	readers = 2
)

// Spool is a timeline in a directory.
type Spool struct {
	o     Options
	turns chan struct{} // has a token for each reader

	// Of the writer.
	file    *os.File // nil: a segment must be begun
	encoder *timeline.Encoder
	base    int64 // bytes of its whole table
	number  uint64
	write   func(*os.File, []byte) error

	mu     sync.Mutex
	parts  []*part   // the oldest first
	looked time.Time // up to when the table is known beyond the last event; zero: no further
	short  time.Time // end of what was removed because of its size; zero: nothing was
	size   int64
	failed string // why nothing is written; empty: it is
}

// Open reads what is in a directory, as far as it is whole.
func Open(o Options, now time.Time) (*Spool, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("keep how the fabric was: %w", err)
	}
	all, err := os.ReadDir(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("keep how the fabric was: %w", err)
	}
	s := &Spool{o: o, turns: make(chan struct{}, readers), write: writeAll}
	for _, f := range all {
		number, err := strconv.ParseUint(strings.TrimSuffix(f.Name(), suffix), 16, 64)
		if err != nil || !strings.HasSuffix(f.Name(), suffix) {
			continue
		}
		s.number = max(s.number, number)
		p := &part{number: number, path: filepath.Join(o.Dir, f.Name())}
		switch whole, err := p.read(o.Class); {
		case err != nil:
			continue // nothing says that it is bad: it stays, and its times are not known
		case !whole:
			// Nothing of it can be read, such as where the disk was full. An older layout goes this way, too.
			if err := os.Remove(p.path); err != nil {
				return nil, fmt.Errorf("keep how the fabric was: %w", err)
			}
			continue
		}
		s.parts = append(s.parts, p)
		s.size += p.size
	}
	slices.SortFunc(s.parts, func(a, b *part) int { return a.first.Compare(b.first) })
	s.prune(now)
	return s, nil
}

// Begin begins with a whole table. why says why nothing is known of the time before.
func (s *Spool) Begin(at time.Time, why string, table *timeline.State) error {
	return s.note(s.begin(s.after(at), timeline.Begin, why, table))
}

// Change adds what changed, which is in the table already. No change adds that there was none.
func (s *Spool) Change(at time.Time, changes []timeline.Change, table *timeline.State) error {
	sort := timeline.Changed
	if len(changes) == 0 {
		sort = timeline.Alive
	}
	return s.note(s.add(s.after(at), sort, "", changes, table))
}

// Resume adds what changed while the table was not known.
func (s *Spool) Resume(at time.Time, changes []timeline.Change, table *timeline.State) error {
	return s.note(s.add(s.after(at), timeline.Resumed, "", changes, table))
}

// End adds that the table is not known from now on, and why.
func (s *Spool) End(at time.Time, why string) error {
	return s.note(s.add(s.after(at), timeline.End, why, nil, nil))
}

// Close ends the segment in use. What is known then ends with its last event; use End before to say why.
func (s *Spool) Close() error {
	s.mu.Lock()
	s.looked = time.Time{}
	s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file, s.encoder = nil, nil
	return f.Close()
}

// Looked says that the table was looked at, and no row had changed. Nothing is written.
func (s *Spool) Looked(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.newest(); s.file != nil && p != nil && p.known && at.After(p.last) {
		s.looked = at
	}
}

// Written returns the time of the last event, the zero time before the first one.
func (s *Spool) Written() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.newest(); p != nil {
		return p.last
	}
	return time.Time{}
}

// Size returns how many bytes all segments take.
func (s *Spool) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// Open reports whether a segment is open, so that events can be added.
func (s *Spool) Open() bool { return s.file != nil }

func (s *Spool) newest() *part {
	if len(s.parts) == 0 {
		return nil
	}
	return s.parts[len(s.parts)-1]
}

// after returns a time in milliseconds that is later than that of the last event.
func (s *Spool) after(at time.Time) time.Time {
	at = at.UTC().Truncate(time.Millisecond)
	if last := s.Written(); !at.After(last) {
		return last.Add(time.Millisecond)
	}
	return at
}

// note keeps whether the last write succeeded. After one that did not the segment takes no more.
func (s *Spool) note(err error) error {
	if err != nil {
		err = errors.Join(fmt.Errorf("keep how the fabric was: %w", err), s.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed = ""; err != nil {
		s.failed = err.Error()
	}
	return err
}

func (s *Spool) begin(at time.Time, sort timeline.Sort, why string, table *timeline.State) error {
	if s.file != nil {
		f := s.file
		s.file = nil
		if err := f.Close(); err != nil {
			return err
		}
	}
	e := &timeline.Encoder{}
	data, err := e.Begin(at, sort, why, table)
	if err != nil {
		return err
	}
	s.number++
	p := &part{number: s.number, path: filepath.Join(s.o.Dir, fmt.Sprintf("%016x%s", s.number, suffix))}
	f, err := os.OpenFile(p.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if err := s.write(f, data); err != nil {
		return errors.Join(err, f.Close(), os.Remove(p.path))
	}
	s.file, s.encoder, s.base = f, e, int64(len(data))
	p.add(&timeline.Event{Time: at, Sort: sort, Why: why}, s.o.Class)
	p.size = s.base
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts, s.size, s.looked = append(s.parts, p), s.size+p.size, time.Time{}
	s.prune(at)
	return nil
}

func (s *Spool) add(at time.Time, sort timeline.Sort, why string, changes []timeline.Change, table *timeline.State) error {
	if s.file == nil {
		return errors.New("no segment is begun")
	}
	if table != nil && table.Len() > timeline.MaxRows {
		return timeline.ErrTooMany // no reader takes more
	}
	data, err := s.encoder.Event(at, sort, why, changes)
	if err != nil {
		return err
	}
	if err := s.write(s.file, data); err != nil {
		return err
	}
	s.mu.Lock()
	p := s.newest()
	p.add(&timeline.Event{Time: at, Sort: sort, Why: why, Changes: changes}, s.o.Class)
	p.size += int64(len(data))
	s.size += int64(len(data))
	s.looked = time.Time{}
	full := p.size-s.base >= max(rollSize, s.base) || at.Sub(p.first) >= rollAfter
	s.mu.Unlock()
	if full && p.known && table != nil {
		return s.begin(at.Add(rollStep), timeline.Continues, "", table)
	}
	return nil
}

// prune removes what is too old, or too much, but for the segment in use.
func (s *Spool) prune(now time.Time) {
	for len(s.parts) > 1 {
		p := s.parts[0]
		old := p.last.Before(now.Add(-s.o.Keep))
		if !old && s.size <= s.o.Size {
			return
		}
		if err := os.Remove(p.path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return // the next segment tries again
		}
		if !old {
			s.short = p.last
		}
		s.parts, s.size = s.parts[1:], s.size-p.size
	}
}

func writeAll(f *os.File, data []byte) error {
	_, err := f.Write(data)
	return err
}
