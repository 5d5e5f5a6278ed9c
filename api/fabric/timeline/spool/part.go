package spool

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/api/fabric/timeline"
)

// part is what is known of one segment without reading it.
type part struct {
	number      uint64
	path        string
	size        int64
	first, last time.Time // of its events
	sort        timeline.Sort
	why         string // of the beginning
	known       bool   // at its end
	gaps        []Gap  // within it; the last one has no end where it is not known at its end
	marks       []mark // in the order of time
	bounds      [classes]bounds
}

// bounds are the times of the first and the last change, zero where there is none.
type bounds struct{ first, last time.Time }

// mark counts the changes in one minute.
type mark struct {
	minute  int64 // since 1970
	changes [classes]int
}

// Gap is a time of which nothing is known.
type Gap struct {
	From, Until time.Time // Until is zero where it goes on
	Why         string
}

// load returns the bytes of the segment.
func (p *part) load() ([]byte, error) {
	f, err := os.OpenFile(p.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", p.path)
	case info.Size() > most:
		return nil, fmt.Errorf("%s has %d bytes, want %d at most", p.path, info.Size(), most)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// read takes in the segment as far as it is whole, and reports whether anything is. After an error its bytes were not read.
func (p *part) read(class func(timeline.Kind) Class) (bool, error) {
	data, err := p.load()
	if err != nil {
		return false, err
	}
	r := timeline.NewReader(data)
	for {
		e, err := r.Next()
		if err != nil {
			p.size = int64(len(data))
			return !p.first.IsZero(), nil
		}
		p.add(e, class)
	}
}

// follows reports whether the segment goes on where the one before it ends, so that the table is known between the two.
func (p *part) follows(before *part) bool {
	return p.sort == timeline.Continues && before.known && p.first.Sub(before.last) <= rollStep
}

// before returns why nothing is known of the time before the segment, which does not follow another one.
func (p *part) before() string {
	if p.sort == timeline.Continues {
		return "what was recorded then is lost, or was altered"
	}
	return cmp.Or(p.why, noWord)
}

// add takes in an event.
func (p *part) add(e *timeline.Event, class func(timeline.Kind) Class) {
	if p.first.IsZero() {
		p.first, p.sort, p.why = e.Time, e.Sort, e.Why
	}
	p.last = e.Time
	switch {
	case e.Sort == timeline.End && p.known:
		p.gaps = append(p.gaps, Gap{From: e.Time, Why: e.Why})
	case e.Sort == timeline.Resumed && !p.known:
		p.gaps[len(p.gaps)-1].Until = e.Time
	}
	p.known = e.Sort != timeline.End
	if e.Sort == timeline.Changed {
		p.count(e, class)
	}
}

// count marks the changes of an event.
func (p *part) count(e *timeline.Event, class func(timeline.Kind) Class) {
	var n [classes]int
	for i := range e.Changes {
		c := class(e.Changes[i].Kind)
		if c == All {
			n[All]++
		}
		if c != None {
			n[Confined]++
		}
	}
	if n[Confined] == 0 {
		return
	}
	minute := e.Time.Unix() / 60
	if len(p.marks) == 0 || p.marks[len(p.marks)-1].minute != minute {
		p.marks = append(p.marks, mark{minute: minute})
	}
	m := &p.marks[len(p.marks)-1]
	for c := range n {
		m.changes[c] += n[c]
		if n[c] == 0 {
			continue
		}
		if b := &p.bounds[c]; b.first.IsZero() {
			b.first = e.Time
		}
		p.bounds[c].last = e.Time
	}
}

// errGone says that a segment was removed while it was to be read.
var errGone = errors.New("it was removed, as the oldest")
