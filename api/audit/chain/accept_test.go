package chain

import (
	"strings"
	"testing"
	"time"
)

// verified returns the Log of records by place; a nil one cannot be read.
func verified(t *testing.T, head Head, places []uint64, records []*Entry) *Log {
	t.Helper()
	l := &Log{}
	for i, place := range places {
		if _, err := l.Add(place, records[i]); err != nil {
			t.Fatal(err)
		}
	}
	l.End(head)
	return l
}

// next returns the entry that follows a head.
func next(t *testing.T, at Head, e Entry) Entry {
	t.Helper()
	e.Seq, e.Prev, e.Time = at.Seq+1, at.Hash, time.Unix(9, 0).UTC()
	var err error
	if e.Hash, err = e.Sum(); err != nil {
		t.Fatal(err)
	}
	return e
}

// Behind each kind of break the log goes on, and an entry that accepts it has it count no more; one that accepts another does not.
func TestLog(t *testing.T) {
	for name, change := range map[string]func(log []*Entry) (places []uint64, left []*Entry){
		"altered": func(log []*Entry) ([]uint64, []*Entry) { log[2].Actor = "x"; return nil, log },
		"altered with a fresh hash": func(log []*Entry) ([]uint64, []*Entry) {
			log[2].Actor = "x"
			log[2].Hash, _ = log[2].Sum()
			return nil, log
		},
		"cannot be read":      func(log []*Entry) ([]uint64, []*Entry) { log[2] = nil; return nil, log },
		"last not to be read": func(log []*Entry) ([]uint64, []*Entry) { log[5] = nil; return nil, log },
		"missing": func(log []*Entry) ([]uint64, []*Entry) {
			return []uint64{1, 2, 5, 6}, []*Entry{log[0], log[1], log[4], log[5]}
		},
		"last missing":   func(log []*Entry) ([]uint64, []*Entry) { return nil, log[:4] },
		"another number": func(log []*Entry) ([]uint64, []*Entry) { log[2].Seq = 9; return nil, log },
		"one more": func(log []*Entry) ([]uint64, []*Entry) {
			return []uint64{1, 2, 0, 3, 4, 5, 6}, []*Entry{log[0], log[1], log[1], log[2], log[3], log[4], log[5]}
		},
	} {
		list := entries(t, "alice", 6)
		end := Head{Seq: 6, Hash: list[5].Hash}
		log := make([]*Entry, 0, len(list))
		for i := range list {
			log = append(log, &list[i])
		}
		places, left := change(log)
		if places == nil {
			for i := range left {
				places = append(places, uint64(i+1))
			}
		}
		l := verified(t, end, places, left)
		if n := len(l.Breaks()); n != 1 || l.Open() == nil || l.Head().place() != end {
			t.Errorf("%s: %+v, to %+v, want one break and the end", name, l.Breaks(), l.Head())
			continue
		}
		b := *l.Open()
		for _, mine := range []bool{true, false} {
			accepts := b.Accept(time.Unix(9, 0), "ann", "known")
			if !mine {
				accepts.After = strings.Repeat("0", 64)
			}
			e := next(t, end, accepts)
			l := verified(t, Head{Seq: 7, Hash: e.Hash, Branch: 1}, append(places[:len(places):len(places)], 7), append(left[:len(left):len(left)], &e))
			if found := l.Breaks(); len(found) != 1 || (found[0].Accepted != nil) != mine || (l.Open() == nil) != mine || len(l.Accepted()) != 1 {
				t.Errorf("%s: accepted %v: %+v", name, mine, found)
			}
		}
	}
}

// From an acceptance the log goes on on another branch, so that anchors of entries that are gone count no longer.
func TestAcceptanceBranches(t *testing.T) {
	for _, cause := range []string{RolledBack, Cut, Altered} {
		b := Break{Cause: cause, Seq: 3, From: Head{Seq: 3, Hash: "a"}, To: Head{Seq: 2, Hash: "b"}}
		e := next(t, b.To, b.Accept(time.Unix(9, 0), "ann", "known"))
		if h := b.To.After(&e); h.Branch != 1 {
			t.Errorf("%s: branch %d, want 1", cause, h.Branch)
		}
		if a, ok := AcceptanceOf(&e); !ok || !a.of(&b) {
			t.Errorf("%s: %+v is not of %+v", cause, a, b)
		}
		for _, object := range []string{"", "audit/", "audit/3", "audit/3-2x", "audit/03-2", "state"} {
			other := e
			other.Object = object
			if _, ok := AcceptanceOf(&other); ok {
				t.Errorf("%q is an acceptance", object)
			}
		}
	}
}

// No more breaks are collected than are listed.
func TestManyBreaks(t *testing.T) {
	l := &Log{}
	list := entries(t, "alice", 3*MaxBreaks)
	for i := range list {
		list[i].Actor = "x"
		if _, err := l.Add(list[i].Seq, &list[i]); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(l.Breaks()); n != MaxBreaks || l.Head().Seq != uint64(len(list)) {
		t.Errorf("%d breaks to entry %d", n, l.Head().Seq)
	}
}
