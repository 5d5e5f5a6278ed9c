package satest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// segment makes one of the segments of a query, counted from 0.
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

// transaction is a query in progress.
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

// acknowledged sends the next segments of a long query that fit the window of the other side.
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
	// A requester that asked with segments opens the window for the answer.
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
	// The first segment is always acknowledged: the other side may not have seen a window that was opened before it had
	// anything to send.
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

// Count asks for a table and discards its records as they arrive. If the simulator's preload library cut off the segments,
// it counts the one MAD there is.
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
