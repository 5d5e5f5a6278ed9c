package work

import (
	"cmp"
	"slices"
	"time"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

// MaxOut is the largest bound of requests that count against a window.
const MaxOut = maxSlots / 4

// Request is an SMP that is out.
type Request struct {
	ID     uint32 // given by Window.Add; never 0
	Ref    Ref
	Node   topo.NodeID // target, None for one not known yet
	Epoch  uint32      // of the target, or of the port's node
	Method mad.Method
	Attr   mad.AttrID
	Mod    uint32
	Sent   time.Time
	Audit  bool // part of the background audit
	late   bool // no longer counts against the window
}

// IsAside reports whether a request does not unsettle the fabric.
func (r *Request) IsAside() bool {
	return r.Audit && (r.Method != mad.MethodSet || r.Ref.Class == Notice)
}

// isIdle reports whether nothing that is wanted of the fabric depends on a request: it asks another Subnet Manager what
// it is. A hung one would delay for ever that the fabric is settled.
func (r *Request) isIdle() bool { return r.Ref.Class == SMInfo && r.IsAside() }

// IsAnsweredBy reports whether a MAD is the answer to a request.
func (r *Request) IsAnsweredBy(m *mad.MAD) bool {
	return m.IsSMP() && (!m.IsDR() || m.Returning()) && m.BaseVersion() == 1 && m.Method() == mad.MethodGetResp && m.Attr() == r.Attr && m.Mod() == r.Mod
}

// Kind is what requests are counted by.
type Kind struct {
	Method mad.Method
	Attr   mad.AttrID
}

// Window holds the requests that are out. Use NewWindow.
type Window struct {
	slots Slots[Request]
	order []uint32 // ids by time of sending; head is the oldest that may not be late yet
	head  int
	fresh int // requests out that count against the window
	find  int // fresh ones of classes that discover
	seek  int // all of these classes
	idle  int // requests out that nothing wanted depends on

	sent map[Kind]uint64
	sets uint64
	all  uint64
}

// NewWindow returns a window without requests, with memory for as many as may count.
func NewWindow(size int) Window {
	return Window{
		slots: NewSlots[Request](size), order: make([]uint32, 0, 2*size),
		sent: make(map[Kind]uint64),
	}
}

// HasRoom reports whether one more request may be sent where some may count. Late ones do not count, so that silent nodes
// cannot stall the others; but they are bounded.
func (w *Window) HasRoom(size int) bool { return w.fresh < size && w.slots.Out() < 4*size }

// Add records a request that goes out, and returns its id. A repetition delays no other work: it never counts.
func (w *Window) Add(r *Request, repeats bool) uint32 {
	id, at := w.slots.Take()
	r.ID, r.late = id, repeats
	*at = *r
	if r.isIdle() {
		w.idle++
	}
	if r.Ref.Class.Discovers() {
		w.seek++
	}
	if !repeats {
		w.fresh++
		if r.Ref.Class.Discovers() {
			w.find++
		}
		w.order = append(w.order, r.ID)
	}
	w.sent[Kind{r.Method, r.Attr}]++
	w.all++
	if r.Method == mad.MethodSet {
		w.sets++
	}
	return r.ID
}

// End removes a request, and returns it. It reports false if none with that id is out.
func (w *Window) End(id uint32) (Request, bool) {
	r, ok := w.slots.End(id)
	if !ok {
		return Request{}, false
	}
	w.notFresh(&r)
	if r.isIdle() {
		w.idle--
	}
	if r.Ref.Class.Discovers() {
		w.seek--
	}
	return r, true
}

// Ignore has a request that is out no longer count.
func (w *Window) Ignore(id uint32) {
	if r := w.slots.At(id); r != nil {
		w.notFresh(r)
	}
}

func (w *Window) notFresh(r *Request) {
	if r.late {
		return
	}
	r.late = true
	w.fresh--
	if r.Ref.Class.Discovers() {
		w.find--
	}
}

// Age marks requests late that are out for some time, and returns the time at which the next will be; zero: none.
func (w *Window) Age(now time.Time, late time.Duration) (next time.Time) {
	for ; w.head < len(w.order); w.head++ {
		id := w.order[w.head]
		r := w.slots.At(id)
		if r == nil || r.late {
			continue
		}
		if due := r.Sent.Add(late); due.After(now) {
			return due
		}
		w.notFresh(r)
	}
	w.order, w.head = w.order[:0], 0
	return time.Time{}
}

// Trim frees memory of requests that have ended.
func (w *Window) Trim() {
	if w.head > 4*maxSlots {
		w.order = append(w.order[:0], w.order[w.head:]...)
		w.head = 0
	}
}

// AnyOut reports whether a request that is out is one of those that match.
func (w *Window) AnyOut(match func(*Request) bool) bool { return w.slots.Any(match) }

// Out returns how many requests are out.
func (w *Window) Out() int { return w.slots.Out() }

// IsWanted reports whether something that is wanted of the fabric depends on a request that is out.
func (w *Window) IsWanted() bool { return w.Out() > w.idle }

// Fresh returns how many requests that are out count against the window.
func (w *Window) Fresh() int { return w.fresh }

// Late returns how many requests that are out do not.
func (w *Window) Late() int { return w.slots.Out() - w.fresh }

// MayFind reports whether a request that counts is of a class that discovers.
func (w *Window) MayFind() bool { return w.find > 0 }

// WillFind reports whether a request of such a class is out, also one that does not count.
func (w *Window) WillFind() bool { return w.seek > 0 }

// All returns how many requests were sent ever.
func (w *Window) All() uint64 { return w.all }

// Sets returns how many of them were Sets.
func (w *Window) Sets() uint64 { return w.sets }

// Count says how many requests of a kind were sent.
type Count struct {
	Method mad.Method
	Attr   mad.AttrID
	Sent   uint64
}

// Counts returns how many requests were sent of each kind, by attribute and method.
func (w *Window) Counts() []Count {
	out := make([]Count, 0, len(w.sent))
	for k, n := range w.sent {
		out = append(out, Count{Method: k.Method, Attr: k.Attr, Sent: n})
	}
	slices.SortFunc(out, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Attr, b.Attr), cmp.Compare(a.Method, b.Method))
	})
	return out
}
