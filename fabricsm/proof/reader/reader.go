package reader

import (
	"errors"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
)

// Options say what is known of the fabric before it is read.
type Options struct {
	// Owner returns the owner of the device that is found at a place: of a switch as a whole, of an adapter at that place.
	// The zero Place is the own port. A device at a place where another one is declared is to be Undeclared.
	Owner func(at ib.Place, is Identity) proof.Owner
	// Spare reports whether a port of a switch is declared to be unused; nil: none is.
	Spare func(at ib.Place) bool
	// Key returns the M_Key for the device at a place, and no key where none may be shown; nil: no device is sent one.
	Key func(at ib.Place) ib.MKey
	// Alias returns the owner to which a GUID was issued that the port of another owner may hold as an alias; the same owner if it was
	// issued to none. nil: alias GUIDs are not read.
	Alias func(guid ib.GUID, holder proof.Owner) proof.Owner
	// Inbound is how switches compare membership, which no attribute shows.
	Inbound proof.InboundRule

	// Draw returns the next transaction id. It is to be hard to guess: a forged answer needs it.
	Draw func() uint32

	// Earlier is a reading that this one builds on; nil: everything is asked.
	Earlier *Earlier

	Window   int // requests that are out at a time, at least 1
	Attempts int // how often a request is sent before the device counts as silent, at least 1
	Devices  int // at most so many devices are read; 0: 65,536
}

// Identity is who a device says it is.
type Identity struct {
	Type ib.NodeType
	Node ib.GUID
	Port ib.GUID // GUID of the port at which it is asked, of a switch that of port 0
}

// Reader reads one fabric once. It is not safe for concurrent use.
type Reader struct {
	o       Options
	devices []device
	byGUID  map[ib.GUID]int
	asks    []ask
	byName  map[name]int
	known   map[ib.GUID]int // devices of the earlier reading
	out     map[uint32]sent
	again   []sent // requests to be repeated
	next    int    // in asks
	second  bool   // the second round has begun
	sent    int
	unasked int                         // answers that nothing asked for
	amends  bool                        // nothing is asked but what Earlier.Only names
	owners  map[proof.Place]proof.Owner // of adapters, where they are others than in the earlier reading
}

// sent is a request that is out: which ask, and the attempt.
type sent struct{ ask, attempt int }

const maxDevices = 1 << 16

// New returns a reader that has asked nothing yet.
func New(o Options) (*Reader, error) {
	if o.Owner == nil || o.Draw == nil || o.Window < 1 || o.Attempts < 1 || o.Devices < 0 {
		return nil, errors.New("read fabric: Owner, Draw, Window and Attempts must be set: set them in Options")
	}
	if o.Devices == 0 {
		o.Devices = maxDevices
	}
	if e := o.Earlier; e != nil && (e.Found == nil || e.Touched == nil) {
		return nil, errors.New("read fabric: an earlier reading needs what was found and what was touched since: set Found and Touched")
	}
	r := &Reader{o: o, byGUID: map[ib.GUID]int{}, byName: map[name]int{}, out: map[uint32]sent{}}
	r.known = o.Earlier.devices()
	if !r.amend() {
		r.add(ask{name: name{device: none, attr: mad.AttrNodeInfo}})
	}
	return r, nil
}

// Next returns the next request. It returns false while the window is full, while answers have to come first, and at the end.
func (r *Reader) Next() (m mad.MAD, ok bool) {
	if len(r.out) >= r.o.Window {
		return m, false
	}
	var s sent
	switch {
	case len(r.again) > 0:
		s, r.again = r.again[0], r.again[1:]
	default:
		r.skip()
		if r.next == len(r.asks) {
			return m, false
		}
		s.ask = r.next
		r.next++
	}
	q := &r.asks[s.ask]
	h := mad.Header{Method: mad.MethodGet, TID: r.draw(s), Attr: q.attr, Mod: q.mod}
	mad.NewSMP(&m, h, &q.route, r.key(q.at))
	r.sent++
	return m, true
}

// draw takes an id for a request. An id that is taken, and 0, are not used.
func (r *Reader) draw(s sent) ib.TID {
	id := r.o.Draw()
	for _, taken := r.out[id]; taken || id == 0; _, taken = r.out[id] {
		id++
	}
	s.attempt++
	r.out[id] = s
	return ib.TID(id)
}

func (r *Reader) key(at ib.Place) ib.MKey {
	if r.o.Key == nil {
		return ib.MKey{}
	}
	return r.o.Key(at)
}

// advance begins the second round after the last answer of the first.
func (r *Reader) advance() {
	r.skip()
	if !r.second && r.next == len(r.asks) && len(r.out) == 0 && len(r.again) == 0 {
		r.second, r.next = true, 0
	}
	r.skip()
}

// skip leaves out what is not asked: in the first round what cannot be, and what the earlier reading answers; in the second
// also what was not read in the first.
func (r *Reader) skip() {
	for r.next < len(r.asks) {
		q := &r.asks[r.next]
		if r.second && q.how == proof.WasRead && !q.taken || !r.second && q.cause == Fine && !r.take(r.next) {
			return
		}
		r.next++
	}
}

// Done reports whether everything was asked twice and every request is settled.
func (r *Reader) Done() bool {
	return r.second && r.next == len(r.asks) && len(r.out) == 0 && len(r.again) == 0
}

// Expire takes note that a request was not answered in time, or came back undelivered.
func (r *Reader) Expire(id ib.TID) {
	s, ok := r.out[uint32(id)]
	if !ok {
		return
	}
	delete(r.out, uint32(id))
	if s.attempt < r.o.Attempts {
		r.again = append(r.again, s)
		return
	}
	r.settle(s.ask, nil, Silent)
}

// Answer takes an answer. It reports whether it belongs to a request that is out. Of its transaction id the low half counts:
// the kernel has the other.
func (r *Reader) Answer(m *mad.MAD) bool {
	id := uint32(m.TID())
	s, ok := r.out[id]
	if !ok || !m.IsDR() || m.Method() != mad.MethodGetResp {
		r.unasked++
		return false
	}
	q := &r.asks[s.ask]
	switch {
	case m.Attr() != q.attr || m.Mod() != q.mod || m.Route() != q.route || !m.Returning():
		delete(r.out, id)
		r.settle(s.ask, nil, Nonsense)
	case m.Status().IsBusy():
		r.Expire(ib.TID(id))
	case m.Status() != mad.StatusOK:
		delete(r.out, id)
		r.settle(s.ask, nil, Refused)
	default:
		delete(r.out, id)
		r.settle(s.ask, m.Data(), Fine)
	}
	return true
}
