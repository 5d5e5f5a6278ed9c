package satest

import (
	"context"
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

// Answer is a reassembled answer. A zero Method means silence.
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

// Silent reports whether there was no answer.
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

// Client sends requests as a host that uses the port directly. It is for one goroutine.
type Client struct {
	Port *ibsim.Port
	LID  ib.LID // of the host
	SM   ib.LID // of the queried manager

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

// Close detaches, after the acknowledged data has passed the simulator. The simulator drops packets of a client that
// leaves, and the next client in its slot would get the repeated ones.
func (c *Client) Close() error {
	if c.acknowledged {
		_, _ = c.Ask(fenceQuestion) // its error does not matter any more
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
		// The simulator may wait until we read its packets.
		if err := c.take(time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// take receives the available packets, and waits for the first at most d.
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

// next returns the next packet that arrives within d, or errSilence.
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

// Next returns the next packet that arrives within d, of any kind: reports come unsolicited. Without a packet it returns an
// error.
func (c *Client) Next(d time.Duration) (transport.Packet, error) { return c.next(d) }

// Fill makes a MAD from a query, for callers that send it themselves. Data beyond one MAD is left out.
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

// Ask sends a query and reassembles the answer. An answer that breaks a rule of RMPP is an error. A missing answer is no
// error, and may only be late; Confirm finds out.
func (c *Client) Ask(q Question) (Answer, error) {
	tid, err := c.post(&q)
	if err != nil {
		return Answer{}, err
	}
	t := transaction{client: c, question: &q, tid: tid}
	fence := false // a query that follows, to detect that this one may be lost
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

// Answered asks until there is an answer: a slow machine loses requests, and answers come too late. It returns an error if
// there is none after patience.
func (c *Client) Answered(q Question) (Answer, error) {
	for until := time.Now().Add(patience); ; {
		a, err := c.Ask(q)
		if err != nil || !a.Silent() {
			return a, err
		}
		if time.Now().After(until) {
			return a, fmt.Errorf("%v of %v: no answer in %v", q.Method, q.Attr, patience)
		}
	}
}

// Confirm repeats unanswered queries once, with a long timeout. A query that is still silent has no answer.
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

// fenceQuestion is a query that every manager answers.
var fenceQuestion = Question{Method: mad.MethodGet, Attr: mad.AttrClassPortInfo}

// fenceTID is below those of other questions.
const fenceTID = 1

// post sends the first MAD of a query.
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
