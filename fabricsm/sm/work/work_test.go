package work

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"portcullis/fabricsm/mad"
)

// TestQueueOrder checks that the most urgent work comes first, and equally urgent work in its order.
func TestQueueOrder(t *testing.T) {
	var q Queue
	q.Extend(1, 3)
	q.MarkPort(Set, 1)
	q.MarkPort(Info, 2)
	q.MarkPort(Info, 1)
	q.MarkPort(Info, 2) // waits already
	q.MarkNode(Switch, 0)
	q.MarkUrgent(OnPort(PKey, 0))
	want := []Ref{OnPort(PKey, 0), OnNode(Switch, 0), OnPort(Info, 2), OnPort(Info, 1), OnPort(Set, 1)}
	if q.Urgent() != 1 || q.Waiting(Info) != 2 || !q.MayFind() {
		t.Errorf("%d urgent, %d to be read, may find %v; want 1, 2, true", q.Urgent(), q.Waiting(Info), q.MayFind())
	}
	for i, w := range want {
		if x, ok := q.Pop(); !ok || x != w || q.IsVoid(x) {
			t.Errorf("%d: %v, %v; want %v", i, x, ok, w)
		}
		q.Unmark(w)
	}
	if _, ok := q.Pop(); ok || !q.IsEmpty() || q.MayFind() {
		t.Error("the queue is not empty")
	}
}

// TestMarks checks work that is marked while a request for it is out, while it is held, and while it waits elsewhere.
func TestMarks(t *testing.T) {
	var q Queue
	q.Extend(0, 1)
	x := OnPort(Set, 0)
	q.Begin(x)
	q.Mark(x)
	if !q.IsEmpty() || !q.IsAsked(Set, 0) {
		t.Error("work was queued while its request is out")
	}
	if !q.End(x) || q.End(x) || q.IsAsked(Set, 0) {
		t.Error("the mark was not kept until the request ended, or longer")
	}
	q.Hold(x)
	if q.Mark(x); !q.IsEmpty() {
		t.Error("held work was queued")
	}
	q.Free(x)
	q.Mark(x)
	q.Pop()
	q.Begin(x) // out of its turn
	if !q.IsVoid(x) || q.PutBack(x) || !q.End(x) {
		t.Error("an entry whose request is out is not put off until that ended")
	}
	q.Mark(x)
	if q.ForgetPort(0); !q.IsVoid(x) {
		t.Error("an entry of a port that is gone is not void")
	}
}

// TestWindow checks that late requests make room, and that an answer to an earlier request of a slot is not taken.
func TestWindow(t *testing.T) {
	w := NewWindow(1)
	now := time.Unix(0, 0)
	first := w.Add(&Request{Ref: OnPort(Probe, 0), Method: mad.MethodGet, Sent: now}, false)
	if w.HasRoom(1) || !w.MayFind() || w.Fresh() != 1 {
		t.Error("a request that is out leaves room")
	}
	if next := w.Age(now, time.Second); !next.Equal(now.Add(time.Second)) {
		t.Errorf("late at %v, want in a second", next)
	}
	if w.Age(now.Add(time.Second), time.Second); !w.HasRoom(1) || w.MayFind() || w.Late() != 1 {
		t.Error("a late request leaves no room")
	}
	if r, ok := w.End(first); !ok || r.Ref != OnPort(Probe, 0) || w.Out() != 0 {
		t.Errorf("ended %v, %v; %d are out", r, ok, w.Out())
	}
	second := w.Add(&Request{Ref: OnPort(Set, 0), Method: mad.MethodSet}, true)
	if _, ok := w.End(first); ok || w.Fresh() != 0 || w.Sets() != 1 || w.All() != 2 {
		t.Error("an answer to a request that ended was taken, or a repetition counts")
	}
	if !w.AnyOut(func(r *Request) bool { return r.ID == second }) || second&slotMask == UnusedID(1)&slotMask {
		t.Error("the request that is out is not found")
	}
	w.End(second)
	for _, tt := range []struct {
		class  Class
		audit  bool
		method mad.Method
		wanted bool
	}{
		{SMInfo, true, mad.MethodGet, false},
		{SMInfo, false, mad.MethodGet, true}, // an election depends on it
		{SMInfo, true, mad.MethodSet, true},
		{Info, true, mad.MethodGet, true},
	} {
		id := w.Add(&Request{Ref: OnPort(tt.class, 0), Method: tt.method, Audit: tt.audit}, false)
		if got := w.IsWanted(); got != tt.wanted {
			t.Errorf("%v %v, audit %t: wanted %t", tt.method, tt.class, tt.audit, got)
		}
		if w.End(id); w.IsWanted() {
			t.Error("a request that ended is wanted")
		}
	}
}

// TestTimersFireInOrder compares the heap with a search for the earliest.
func TestTimersFireInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h Timers
		var all []Timer
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			if len(all) > 0 && rapid.Bool().Draw(t, "take") {
				first := 0
				for i := range all {
					if all[i].At.Before(all[first].At) {
						first = i
					}
				}
				got, ok := h.Due(time.Unix(100, 0))
				if !ok || got.Ref != all[first].Ref {
					t.Fatalf("due is %v, %v; want %v", got, ok, all[first])
				}
				all = append(all[:first], all[first+1:]...)
				continue
			}
			x := Timer{At: time.Unix(rapid.Int64Range(0, 9).Draw(t, "at"), 0), Alarm: Near, Ref: Ref{ID: int32(len(h.heap)) + int32(h.seq)*100}}
			h.Add(x)
			all = append(all, x)
		}
		if h.HasNear() != (len(all) > 0) || h.AnyNear(func(Ref) bool { return true }) != (len(all) > 0) || h.Next().IsZero() != (len(all) == 0) {
			t.Fatal("what is left is not known")
		}
	})
}
