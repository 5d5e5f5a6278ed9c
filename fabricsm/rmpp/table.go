package rmpp

import (
	"errors"
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// Errors of Send and Expect.
var (
	// ErrBusy means that the answer is already being sent: see Repeat.
	ErrBusy = errors.New("rmpp: this transaction is going on already")
	// ErrNoRoom means that the port, or all ports, have too many transactions. It is counted in Stats.Refused. A later
	// request may get room, so the caller may stay silent or answer BUSY.
	ErrNoRoom = errors.New("rmpp: no room for another transaction")
)

// Party is the other end of a transaction.
type Party[A any] struct {
	LID ib.LID // source of received packets, destination of sent ones
	QP  uint32
	// Port identifies the port for the limits: its base LID, because a port may have more LIDs. Zero means LID.
	Port ib.LID
	// Back is how to reach it: P_Key, service level, GRH. The Table hands it to
	// Sink.Send.
	Back A
}

// Key names a message. Class and its version are those of subnet administration.
type Key struct {
	TID    ib.TID
	LID    ib.LID // of the other end
	QP     uint32 // of the other end
	Method mad.Method
}

// AnswerKey is the key of the answer to a request that came from lid and qp, or goes
// there.
func AnswerKey(request *mad.MAD, lid ib.LID, qp uint32) Key {
	return Key{TID: request.TID(), LID: lid, QP: qp, Method: request.Method().Response()}
}

// Sink executes the decisions of a Table. It must not call the Table.
type Sink[A any] interface {
	// Send sends a packet. The MAD is the Table's: copy it.
	Send(to A, m *mad.MAD)
	// Ended is called when a transaction is over.
	Ended(End)
}

// End is how a transaction ended.
type End struct {
	Key     Key
	Sending bool
	Cause   Cause
	Status  mad.RMPPStatus // with PeerStopped, PeerAborted, Stopped and Aborted
	Sent    uint32         // segments that were sent; with 0 the peer knows nothing of it
	Source  Source         // as passed to Send
}

// Cause is why a transaction ended.
type Cause uint8

const (
	// Done means that all arrived.
	Done Cause = iota
	// PeerStopped means that the peer sent STOP.
	PeerStopped
	// PeerAborted means that the peer sent ABORT.
	PeerAborted
	// Stopped means that we sent STOP: another transaction needed the room, the source stopped, or the message is too long
	// for us. If no segment was sent before, no STOP is sent.
	Stopped
	// Aborted means that we sent ABORT.
	Aborted
	// Cancelled means that the owner ended it.
	Cancelled
)

// String names the cause.
func (c Cause) String() string {
	switch c {
	case Done:
		return "done"
	case PeerStopped:
		return "stopped by peer"
	case PeerAborted:
		return "aborted by peer"
	case Stopped:
		return "stopped"
	case Aborted:
		return "aborted"
	case Cancelled:
		return "cancelled"
	default:
		return fmt.Sprintf("Cause(%d)", uint8(c))
	}
}

// Outcome is the result of Take.
type Outcome uint8

const (
	// Plain means that RMPP does not carry this MAD: it is the caller's.
	Plain Outcome = iota
	// Used means that there is nothing left to do.
	Used
	// Whole means that a message is complete.
	Whole
)

// Message is a received message. Both fields belong to the Table, until it is called again.
type Message struct {
	Head *mad.MAD // as segment 1, with its data
	Data []byte   // of all segments
}

// Table holds the transactions of one port of ours. A is how to reach a peer. It is
// for one goroutine.
type Table[A any] struct {
	cfg      Config
	sessions map[place]*session[A]
	ports    map[ib.LID]*port[A]
	byCount  []*port[A] // lists of ports by how many transactions they have
	due      []*session[A]
	order    uint64
	memory   memory
	stats    Stats

	idle      []*session[A]
	idlePorts []*port[A]
	idleRings [][]segment

	in  mad.MAD  // copy of the argument of Take, so that the caller's need not outlive the call
	out mad.MAD  // packet for the Sink
	msg mad.MAD  // Message.Head
	one receiver // of segments 1, most of which are whole messages
}

// place is where a transaction is in a Table.
type place struct {
	key     Key
	sending bool
}

// New makes a table.
func New[A any](c Config) (*Table[A], error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Table[A]{
		cfg:      c,
		sessions: map[place]*session[A]{},
		ports:    map[ib.LID]*port[A]{},
		byCount:  make([]*port[A], c.PerPort+1),
		memory:   memory{at: map[Key]remembered{}, max: c.Remembered, age: c.Remember},
	}, nil
}

// Send begins to send a message: head's header and the data that the source makes,
// total bytes or Unknown of them. It sends the first segment at once. The header
// needs no RMPP header; its AttributeOffset is put to 0 if there are no data. If it
// returns an error, which is ErrBusy or ErrNoRoom, it has not used the source.
func (t *Table[A]) Send(now time.Time, to Party[A], head *mad.MAD, src Source, total int, sink Sink[A]) error {
	key := Key{TID: head.TID(), LID: to.LID, QP: to.QP, Method: head.Method()}
	s, err := t.open(now, to, place{key, true}, sink)
	if err != nil {
		return err
	}
	s.endAt = now.Add(t.cfg.SendLimit)
	window := t.memory.window(now, Key{TID: key.TID, LID: key.LID, QP: key.QP, Method: key.Method ^ responseBit})
	s.send.start(head, src, total, window, uint32(t.cfg.Window))
	t.turn(now, s, sink)
	return nil
}

// Repeat is for a repeated request. It reports whether the answer is already being sent, so that the caller does not make
// it twice. If no segment has been acknowledged, segment 1 is sent again at once.
func (t *Table[A]) Repeat(k Key, sink Sink[A]) bool {
	s := t.sessions[place{k, true}]
	if s == nil {
		return false
	}
	if s.send.acked == 0 && s.send.sent > 0 {
		s.send.write(&t.out, 1)
		t.stats.Segments++
		t.stats.Resent++
		sink.Send(s.back, &t.out)
	}
	return true
}

// Expect makes room for the answer to a request, which the caller sends: a GetMulti
// by Send, others as they are. It may be maxLen bytes long, and begin within wait. An
// answer that RMPP does not carry, as one that is only a status, is Plain: Cancel then.
func (t *Table[A]) Expect(now time.Time, from Party[A], request *mad.MAD, maxLen int, wait time.Duration, sink Sink[A]) error {
	s, err := t.open(now, from, place{AnswerKey(request, from.LID, from.QP), false}, sink)
	if err != nil {
		return err
	}
	s.recv.start(maxLen, t.cfg.ReceiveWindow)
	t.out = *request
	t.out.SetMethod(s.place.key.Method)
	copy(s.recv.head[:], t.out[:headLen])
	s.expected = true
	s.twoSided = request.Method() == mad.MethodGetMulti
	s.endAt = now.Add(wait)
	t.schedule(s, s.endAt)
	return nil
}

// Cancel ends an expected or running transaction, without a packet to the peer.
func (t *Table[A]) Cancel(k Key, sink Sink[A]) {
	for _, sending := range [...]bool{false, true} {
		if s := t.sessions[place{k, sending}]; s != nil {
			t.end(s, Cancelled, mad.RMPPNormal, sink)
		}
	}
}

// Drop ends all transactions of a port, without a word to it: it is gone.
func (t *Table[A]) Drop(base ib.LID, sink Sink[A]) {
	for p := t.ports[base]; p != nil && p.head != nil; {
		t.end(p.head, Cancelled, mad.RMPPNormal, sink)
	}
}

// Next returns when Expire has work to do, or zero. It may lie before now.
func (t *Table[A]) Next() time.Time {
	if len(t.due) == 0 {
		return time.Time{}
	}
	return t.due[0].at
}

// Expire does the due work: it sends again, ends transactions that took too long, and continues after a pause of a source.
// After Config.Step segments it leaves the rest due.
func (t *Table[A]) Expire(now time.Time, sink Sink[A]) {
	for work := 0; work < t.cfg.Step && len(t.due) > 0 && !t.due[0].at.After(now); {
		work += 1 + t.expire(now, t.due[0], sink)
	}
}
