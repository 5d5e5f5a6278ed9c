package salab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
)

const (
	// patience is how long an answer may take: tables of large fabrics take seconds
	// to make.
	patience = 30 * time.Second
	// calm is how long a request stays out alone, and how long it is waited for after
	// another that was sent later has been answered.
	calm = 10 * time.Millisecond
	// confirmation is how long nothing must come for nothing to come any more.
	confirmation = time.Second
	// window is how many segments may come before an acknowledgement.
	window = 32

	saQP = 1
)

// Method numbers and header fields that only RMPP uses.
const (
	rmppVersion = 1

	rmppData  = 1
	rmppAck   = 2
	rmppStop  = 3
	rmppAbort = 4

	flagActive = 1
	flagFirst  = 2
	flagLast   = 4

	offRMPP        = 24 // version, type, flags, status
	offSegment     = 28
	offPayload     = 32
	offSAHeader    = 36
	offSAData      = 56
	segmentPayload = 220 // bytes of a segment that PayloadLength counts
	saHeaderSize   = segmentPayload - mad.SADataSize

	responseBit = 0x80
	noRespTime  = 0xF8
)

// Question is one request to subnet administration.
type Question struct {
	Method mad.Method
	Attr   mad.AttrID
	Mod    uint32
	Mask   mad.ComponentMask
	Record []byte // up to mad.SADataSize bytes; of GetMulti more
	Key    ib.SAKey
}

// Answer is what came back, put together. A zero Method means silence.
type Answer struct {
	Method   mad.Method
	Attr     mad.AttrID
	Mod      uint32
	Status   mad.Status
	Mask     mad.ComponentMask
	Key      uint64 // field SM_Key, which must be 0
	Offset   uint16 // AttributeOffset
	Data     []byte // all records; of a method without segments all of the MAD's data
	Segments int    // 0: without RMPP

	// Aborted is the RMPP status of a STOP or ABORT instead of data.
	Aborted uint8
}

// Silent reports whether nobody answered.
func (a *Answer) Silent() bool { return a.Method == 0 }

// Records cuts a table at its AttributeOffset. A remainder is a record too.
func (a *Answer) Records() (records [][]byte) {
	size := 8 * int(a.Offset)
	if size == 0 {
		return nil
	}
	for data := a.Data; len(data) > 0; {
		n := min(size, len(data))
		records = append(records, data[:n])
		data = data[n:]
	}
	return records
}

// Client asks as a host that speaks to the port itself. It is for one goroutine.
type Client struct {
	Port *ibsim.Port
	LID  ib.LID // of the host
	SM   ib.LID // who is asked

	tid    uint32
	in     [64]transport.Packet
	queued []transport.Packet // received and not looked at

	acknowledged bool // a whole table
}

// Dial attaches to a host of a simulated fabric that is up.
func Dial(ctx context.Context, socket, node string) (*Client, error) {
	port, err := ibsim.Dial(ctx, ibsim.Options{Socket: socket, Node: node})
	if err != nil {
		return nil, err
	}
	c := &Client{Port: port, tid: uint32(time.Now().UnixNano())}
	if err := c.Learn(); err != nil {
		return nil, errors.Join(err, port.Close())
	}
	return c, nil
}

// Close detaches, once what was acknowledged has passed the simulator: it forgets what a
// client that leaves has sent, and who has its place next would get what is sent again.
func (c *Client) Close() error {
	if c.acknowledged {
		_, _ = c.Ask(fenceQuestion) // what is wrong with it matters to nobody any more
	}
	return c.Port.Close()
}

// Learn asks the host's own port which LIDs it and its Subnet Manager have.
func (c *Client) Learn() error {
	c.tid++
	p := transport.Packet{LID: ib.PermissiveLID}
	mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo, TID: ib.TID(c.tid), Mod: 0}, &mad.Route{}, ib.MKey{})
	if err := c.send(p); err != nil {
		return err
	}
	for until := time.Now().Add(patience); ; {
		p, err := c.next(time.Until(until))
		if err != nil {
			return fmt.Errorf("ask own port: %w", err)
		}
		if uint32(p.MAD.TID()) != c.tid {
			continue
		}
		var info mad.PortInfo
		if err := mad.Decode(p.MAD.Data(), &info); err != nil {
			return err
		}
		c.LID, c.SM = info.LID, info.MasterSMLID
		return nil
	}
}

var errSilence = errors.New("nothing comes")

func (c *Client) send(packets ...transport.Packet) error {
	for len(packets) > 0 {
		n, err := c.Port.TrySend(packets)
		if err != nil {
			return err
		}
		if packets = packets[n:]; len(packets) == 0 {
			break
		}
		// The simulator may wait for room to give us something.
		if err := c.take(time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// take receives what is there, and waits for something at most d.
func (c *Client) take(d time.Duration) error {
	n, err := c.Port.TryReceive(c.in[:])
	if n == 0 && err == nil && d > 0 {
		if err := c.Port.Pause(d); err != nil {
			return err
		}
		n, err = c.Port.TryReceive(c.in[:])
	}
	c.queued = append(c.queued, c.in[:n]...)
	return err
}

// next gives the next packet that arrives within d, or errSilence.
func (c *Client) next(d time.Duration) (transport.Packet, error) {
	until := time.Now().Add(d)
	for len(c.queued) == 0 {
		left := time.Until(until)
		if left <= 0 {
			return transport.Packet{}, errSilence
		}
		if err := c.take(left); err != nil {
			return transport.Packet{}, err
		}
	}
	p := c.queued[0]
	c.queued = c.queued[1:]
	return p, nil
}

// Next gives the next packet that arrives within d, whatever it is: reports come when
// nobody has asked. Nothing is an error.
func (c *Client) Next(d time.Duration) (transport.Packet, error) { return c.next(d) }

// Fill makes a MAD of a question, for those who send it themselves: what is longer
// than one MAD is left out.
func (q *Question) Fill(m *mad.MAD, tid ib.TID) {
	*m = mad.MAD{}
	m.SetHeader(mad.Header{
		Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion,
		Method: q.Method, TID: tid, Attr: q.Attr, Mod: q.Mod,
	})
	m.SetSAKey(q.Key)
	m.SetComponentMask(q.Mask)
	copy(m.SAData(), q.Record)
}

// Ask sends a question and puts the answer together. An answer that breaks a rule of
// RMPP is an error. No answer is none, but may only be late: Confirm tells.
func (c *Client) Ask(q Question) (Answer, error) {
	tid, err := c.post(&q)
	if err != nil {
		return Answer{}, err
	}
	t := transaction{client: c, question: &q, tid: tid}
	fence := false // a question that follows, to know that this one may be lost
	until := time.Now().Add(patience)
	for giveUp := until; ; {
		p, err := c.next(min(time.Until(giveUp), calm))
		switch {
		case errors.Is(err, errSilence) && !fence && !t.begun():
			fence = true
			if err := c.ask(&fenceQuestion, fenceTID); err != nil {
				return Answer{}, err
			}
			continue
		case errors.Is(err, errSilence) && time.Now().Before(giveUp):
			continue
		case errors.Is(err, errSilence) && !t.begun() && giveUp.Before(until):
			return Answer{}, nil
		case err != nil:
			return Answer{}, fmt.Errorf("%v of %v: after %d segments: %w", q.Method, q.Attr, t.answer.Segments, err)
		}
		if uint32(p.MAD.TID()) == fenceTID {
			if fence && !t.begun() {
				giveUp = time.Now().Add(calm)
			}
			continue
		}
		done, err := t.step(&p)
		if err != nil {
			return Answer{}, fmt.Errorf("%v of %v: %w", q.Method, q.Attr, err)
		}
		if done {
			return t.answer, nil
		}
		if t.begun() {
			giveUp = until
		}
	}
}

// Confirm asks questions that were not answered once more, and waits long. What is
// still silent is not answered.
func (c *Client) Confirm(questions []Question) ([]Answer, error) {
	by := make(map[uint32]*transaction)
	all := make([]transaction, len(questions))
	for i := range questions {
		tid, err := c.post(&questions[i])
		if err != nil {
			return nil, err
		}
		all[i] = transaction{client: c, question: &questions[i], tid: tid}
		by[tid] = &all[i]
	}
	for {
		p, err := c.next(confirmation)
		if errors.Is(err, errSilence) {
			break
		}
		if err != nil {
			return nil, err
		}
		if t := by[uint32(p.MAD.TID())]; t != nil {
			if _, err := t.step(&p); err != nil {
				return nil, fmt.Errorf("%v of %v: %w", t.question.Method, t.question.Attr, err)
			}
		}
	}
	answers := make([]Answer, len(questions))
	for i := range all {
		answers[i] = all[i].answer
	}
	return answers, nil
}

// fenceQuestion is one that everybody answers.
var fenceQuestion = Question{Method: mad.MethodGet, Attr: mad.AttrClassPortInfo}

// fenceTID is below those of other questions.
const fenceTID = 1

// post sends the first MAD of a question.
func (c *Client) post(q *Question) (tid uint32, err error) {
	c.tid = max(c.tid+1, fenceTID+1)
	return c.tid, c.ask(q, c.tid)
}

func (c *Client) ask(q *Question, tid uint32) error {
	p := transport.Packet{LID: c.SM, QP: saQP}
	q.Fill(&p.MAD, ib.TID(tid))
	if q.Method == mad.MethodGetMulti {
		segment(&p.MAD, q, 0)
	}
	return c.send(p)
}

// segment makes one of the segments of a question, counted from 0.
func segment(m *mad.MAD, q *Question, k int) {
	total := max(1, (len(q.Record)+mad.SADataSize-1)/mad.SADataSize)
	clear(m.SAData())
	n := copy(m.SAData(), q.Record[min(len(q.Record), k*mad.SADataSize):])
	m[offRMPP], m[offRMPP+1], m[offRMPP+2], m[offRMPP+3] = rmppVersion, rmppData, noRespTime|flagActive, 0
	payload := 0
	if k == 0 {
		m[offRMPP+2] |= flagFirst
		payload = len(q.Record) + total*saHeaderSize
	}
	if k == total-1 {
		m[offRMPP+2] |= flagLast
		payload = n + saHeaderSize
	}
	binary.BigEndian.PutUint32(m[offSegment:], uint32(k+1))
	binary.BigEndian.PutUint32(m[offPayload:], uint32(payload))
}

// transaction is a question under way.
type transaction struct {
	client   *Client
	question *Question
	tid      uint32
	answer   Answer

	head     [mad.Size]byte // of the first segment
	promised uint32         // PayloadLength of the first segment
	admitted uint32         // last segment that may come
	counted  int            // bytes of data that are not kept
}

func (t *transaction) begun() bool { return t.answer.Segments > 0 }

// step takes a packet that may belong to the transaction.
func (t *transaction) step(p *transport.Packet) (done bool, err error) {
	m := &p.MAD
	if uint32(m.TID()) != t.tid || m.Class() != mad.ClassSubnAdm {
		return false, nil
	}
	if p.Undelivered {
		return false, errors.New("the simulator did not deliver the request")
	}
	active := m[offRMPP+2]&flagActive != 0
	if !active {
		if s := [12]byte(m[offRMPP:offSAHeader]); s != [12]byte{} {
			return false, fmt.Errorf("RMPP header %x without the flag Active", s)
		}
		t.begin(m)
		t.answer.Data = append([]byte(nil), m.SAData()...)
		return true, nil
	}
	if m[offRMPP] != rmppVersion {
		return false, fmt.Errorf("RMPPVersion %d", m[offRMPP])
	}
	switch m[offRMPP+1] {
	case rmppData:
		return t.data(m)
	case rmppAck:
		return false, t.acknowledged(m)
	case rmppStop, rmppAbort:
		t.begin(m)
		t.answer.Aborted = m[offRMPP+3]
		return true, nil
	default:
		return false, fmt.Errorf("RMPPType %d", m[offRMPP+1])
	}
}

func (t *transaction) begin(m *mad.MAD) {
	t.answer.Method, t.answer.Attr, t.answer.Mod = m.Method(), m.Attr(), m.Mod()
	t.answer.Status, t.answer.Mask = m.Status(), m.ComponentMask()
	t.answer.Key, t.answer.Offset = m.SAKeyBits(), m.AttributeOffset()
}

// acknowledged sends what of a long question the other side has room for.
func (t *transaction) acknowledged(m *mad.MAD) error {
	from, to := binary.BigEndian.Uint32(m[offSegment:]), binary.BigEndian.Uint32(m[offPayload:])
	p := transport.Packet{LID: t.client.SM, QP: saQP}
	t.question.Fill(&p.MAD, ib.TID(t.tid))
	for k := from; k < to; k++ {
		if int(k)*mad.SADataSize >= len(t.question.Record) {
			break
		}
		segment(&p.MAD, t.question, int(k))
		if err := t.client.send(p); err != nil {
			return err
		}
	}
	// Who asked with segments opens the window for the answer.
	if int(from)*mad.SADataSize >= len(t.question.Record) {
		t.admitted = window
		return t.acknowledge(&p.MAD, 0)
	}
	return nil
}

// data takes a segment, strictly: nothing on the way loses or reorders any.
func (t *transaction) data(m *mad.MAD) (done bool, err error) {
	number, payload := binary.BigEndian.Uint32(m[offSegment:]), binary.BigEndian.Uint32(m[offPayload:])
	flags := m[offRMPP+2]
	if want := uint32(t.answer.Segments + 1); number != want {
		return false, fmt.Errorf("segment %d, want %d", number, want)
	}
	if number == 1 {
		t.begin(m)
		t.head, t.promised = *m, payload
		if t.admitted == 0 {
			t.admitted = 1
		}
	}
	if number > t.admitted {
		return false, fmt.Errorf("segment %d is beyond the window, which ends with %d", number, t.admitted)
	}
	if (flags&flagFirst != 0) != (number == 1) {
		return false, fmt.Errorf("flags %#x of segment %d", flags, number)
	}
	for _, same := range [...]struct {
		name     string
		from, to int
	}{{"common header", 0, offRMPP}, {"SA header", offSAHeader, offSAData}} {
		if string(m[same.from:same.to]) != string(t.head[same.from:same.to]) {
			return false, fmt.Errorf("%s of segment %d is %x, of the first %x", same.name, number, m[same.from:same.to], t.head[same.from:same.to])
		}
	}
	t.answer.Segments++
	n, last := uint32(mad.SADataSize), flags&flagLast != 0
	if last {
		if payload < saHeaderSize || payload > segmentPayload {
			return false, fmt.Errorf("PayloadLength %d of the last segment", payload)
		}
		n = payload - saHeaderSize
	} else if number > 1 && payload != 0 {
		return false, fmt.Errorf("PayloadLength %d of segment %d", payload, number)
	}
	t.answer.Data = append(t.answer.Data, m.SAData()[:n]...)
	if last {
		all := number*saHeaderSize + uint32(t.counted+len(t.answer.Data))
		if t.promised != 0 && t.promised != all {
			return false, fmt.Errorf("the first segment promised %d bytes, there were %d", t.promised, all)
		}
	}
	// The first is acknowledged whatever was admitted: the other side may not have heard
	// of a window that was opened before it had anything to send.
	if last || number == t.admitted || number == 1 {
		t.admitted = number + window
		if err := t.acknowledge(m, number); err != nil {
			return false, err
		}
	}
	return last, nil
}

func (t *transaction) acknowledge(m *mad.MAD, number uint32) error {
	p := transport.Packet{LID: t.client.SM, QP: saQP}
	copy(p.MAD[:offSAData], m[:offSAData])
	if number > 0 {
		p.MAD.SetMethod(m.Method() ^ responseBit)
	}
	p.MAD.SetStatus(0)
	t.client.acknowledged = true
	p.MAD[offRMPP] = rmppVersion
	p.MAD[offRMPP+1], p.MAD[offRMPP+2] = rmppAck, noRespTime|flagActive
	binary.BigEndian.PutUint32(p.MAD[offSegment:], number)
	binary.BigEndian.PutUint32(p.MAD[offPayload:], t.admitted)
	return t.client.send(p)
}

// Counted is a table that was not kept.
type Counted struct {
	First    time.Time // when the first of it came
	Segments int
	Bytes    int // of records
	Cut      bool
}

// countPatience is how long the next of a table may take to come.
const countPatience = 2 * time.Minute

// Count asks for a table and throws it away as it comes. Of a table whose segments the
// simulator's preload library cut off it takes the one MAD there is.
func (c *Client) Count(q Question) (n Counted, err error) {
	tid, err := c.post(&q)
	if err != nil {
		return n, err
	}
	t := transaction{client: c, question: &q, tid: tid}
	for {
		p, err := c.next(countPatience)
		if err != nil {
			return n, fmt.Errorf("%v of %v: after %d segments: %w", q.Method, q.Attr, t.answer.Segments, err)
		}
		if m := &p.MAD; uint32(m.TID()) == tid && m.Method() == mad.MethodGetTableResp && m[offRMPP+2]&flagActive != 0 &&
			binary.BigEndian.Uint32(m[offSegment:]) == 0 {
			return Counted{First: time.Now(), Segments: 1, Bytes: mad.SADataSize, Cut: true}, nil
		}
		done, err := t.step(&p)
		if err != nil {
			return n, fmt.Errorf("%v of %v: %w", q.Method, q.Attr, err)
		}
		if t.begun() && n.First.IsZero() {
			n.First = time.Now()
		}
		n.Bytes += len(t.answer.Data)
		t.counted += len(t.answer.Data)
		t.answer.Data = t.answer.Data[:0]
		if done {
			n.Segments = t.answer.Segments
			if t.answer.Status != mad.StatusOK || t.answer.Aborted != 0 || n.Segments == 0 {
				return n, fmt.Errorf("%v of %v: status %v, aborted %d", q.Method, q.Attr, t.answer.Status, t.answer.Aborted)
			}
			return n, nil
		}
	}
}
