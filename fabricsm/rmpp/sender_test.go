package rmpp

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// all makes a table send a message to a peer that grants every window, and returns the segments.
func all(t *testing.T, data []byte, total int) []mad.MAD {
	t.Helper()
	table, s := newTable(t, Config{}), &sink{}
	if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), NewBytes(data), total, s); err != nil {
		t.Fatal(err)
	}
	segs := s.take()
	for len(s.ended) == 0 {
		n := uint32(len(segs))
		table.Take(epoch, control(&segs[0], mad.RMPPAck, mad.RMPPNormal, n, n+64), party(7), s)
		segs = append(segs, s.take()...)
	}
	if e := s.ended[0]; e.Cause != Done || !e.Sending || e.Key != (Key{TID: 5, LID: 7, QP: 1, Method: mad.MethodGetTableResp}) {
		t.Fatalf("ended %+v", e)
	}
	return segs
}

// TestHeaders holds the RMPP header of each segment against the standard.
func TestHeaders(t *testing.T) {
	const a, f, l = mad.RMPPActive, mad.RMPPFirst, mad.RMPPLast
	h := func(n uint32, flags mad.RMPPFlags, length uint32) mad.RMPPHeader {
		return mad.RMPPHeader{Version: 1, Type: mad.RMPPData, RespTime: mad.NoRespTime, Flags: flags, Data1: n, Data2: length}
	}
	for _, tt := range []struct {
		n, total int
		want     []mad.RMPPHeader
	}{
		{0, Unknown, []mad.RMPPHeader{h(1, a|f|l, 20)}},
		{0, 0, []mad.RMPPHeader{h(1, a|f|l, 20)}},
		{64, Unknown, []mad.RMPPHeader{h(1, a|f|l, 84)}},
		{64, 64, []mad.RMPPHeader{h(1, a|f|l, 84)}},
		{200, Unknown, []mad.RMPPHeader{h(1, a|f|l, 220)}},
		{201, Unknown, []mad.RMPPHeader{h(1, a|f, 2*220-199), h(2, a|l, 21)}}, // the end is seen in time
		{400, 400, []mad.RMPPHeader{h(1, a|f, 440), h(2, a|l, 220)}},
		{401, Unknown, []mad.RMPPHeader{h(1, a|f, 0), h(2, a, 0), h(3, a|l, 21)}},
		{401, 401, []mad.RMPPHeader{h(1, a|f, 461), h(2, a, 0), h(3, a|l, 21)}},
		{600, Unknown, []mad.RMPPHeader{h(1, a|f, 0), h(2, a, 0), h(3, a|l, 220)}},
		{640, 640, []mad.RMPPHeader{h(1, a|f, 4*220-160), h(2, a, 0), h(3, a, 0), h(4, a|l, 60)}},
	} {
		data := noise(rand.New(rand.NewPCG(1, 2)), tt.n)
		segs := all(t, data, tt.total)
		if d := cmp.Diff(tt.want, headers(segs)); d != "" {
			t.Errorf("%d bytes, total %d: -want +got:\n%s", tt.n, tt.total, d)
		}
		got, err := Reassemble(segs)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: reassembled %d: %v", tt.n, len(got), err)
		}
	}
}

// TestSegmentBytes shows two whole segments, and an empty table.
func TestSegmentBytes(t *testing.T) {
	data := bytes.Repeat([]byte{0xAB}, 203)
	want := func(rmpp string, offset byte, filled int) string {
		b := make([]byte, mad.Size)
		common := "01030292" + "00000000" + "0000000000000005" + "00350000" + "00000000"
		_, _ = hex.Decode(b, []byte(common+rmpp))
		b[45] = offset
		b[54], b[55] = 0x12, 0x34
		copy(b[56:], data[:filled])
		return hex.EncodeToString(b)
	}
	segs := append(all(t, data, 203), all(t, nil, Unknown)...)
	for i, w := range []string{
		want("0101fb00"+"00000001"+"000000f3", 8, 200),
		want("0101fd00"+"00000002"+"00000017", 8, 3),
		want("0101ff00"+"00000001"+"00000014", 0, 0),
	} {
		if got := hex.EncodeToString(segs[i][:]); got != w {
			t.Errorf("segment %d:\n got %s\nwant %s", i, got, w)
		}
	}
}

// TestTotalKept ends a message whose source does not keep to the announced length.
func TestTotalKept(t *testing.T) {
	for _, tt := range []struct{ have, told, sent int }{
		{250, 249, 0}, // seen before anything is sent
		{250, 251, 0},
		{1000, 600, 1},
		{1000, 1100, 1},
	} {
		table, s := newTable(t, Config{}), &sink{}
		if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), NewBytes(make([]byte, tt.have)), tt.told, s); err != nil {
			t.Fatal(err)
		}
		sent := s.take()
		if tt.sent > 0 {
			table.Take(epoch, control(&sent[0], mad.RMPPAck, mad.RMPPNormal, 1, 65), party(7), s)
			sent = s.take()
		}
		last := &sent[len(sent)-1]
		if len(s.ended) != 1 || s.ended[0].Cause != Aborted || last.RMPPType() != mad.RMPPAbort || last.RMPPStatus() != mad.RMPPUnspecified {
			t.Errorf("%d bytes, %d told: %v, ended %v", tt.have, tt.told, headers(sent), s.ended)
		}
	}
}

// TestRepeatedSegmentIsSame sends a segment again when the length is known meanwhile.
func TestRepeatedSegmentIsSame(t *testing.T) {
	table, s := newTable(t, Config{Window: 2}), &sink{}
	if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), NewBytes(make([]byte, 700)), Unknown, s); err != nil {
		t.Fatal(err)
	}
	first := *s.one(t)
	table.Expire(table.Next(), s)
	if again := *s.one(t); again != first || again.PayloadLength() != 0 {
		t.Errorf("first %v, again %v", first.RMPPHeader(), again.RMPPHeader())
	}
	table.Take(epoch, control(&first, mad.RMPPAck, mad.RMPPNormal, 1, 100), party(7), s)
	if sent := s.take(); len(sent) != 3 || sent[2] != first {
		t.Errorf("first %v, then %v", first.RMPPHeader(), headers(sent))
	}
}

// stepped is a source of zeros that makes as many bytes as each step says, then pauses; -1 ends.
type stepped struct{ steps []int }

func (s *stepped) Fill(seg []byte) (int, Then) {
	if len(s.steps) == 0 || s.steps[0] < 0 {
		return 0, ThenEnd
	}
	n := min(s.steps[0], len(seg))
	s.steps = s.steps[1:]
	clear(seg[:n])
	return n, ThenMore
}

// TestPause has a source that makes little at a time: nothing is sent before it is
// known whether it is the last, no time passes for the peer, and others have turns.
func TestPause(t *testing.T) {
	table, s := newTable(t, Config{}), &sink{}
	src := &stepped{steps: []int{100, 0, 100, 0, 0, 200, 200, 0, 0, 30, -1}}
	if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), src, Unknown, s); err != nil {
		t.Fatal(err)
	}
	s.none(t)
	now := epoch
	step := func() {
		t.Helper()
		if next := table.Next(); next.Sub(now) != 1 {
			t.Fatalf("due at %v after now", next.Sub(now))
		}
		now = table.Next()
		table.Expire(now, s)
	}
	for range 3 {
		step()
		s.none(t)
	}
	step()
	first := s.one(t)
	if first.SegmentNumber() != 1 || first.RMPPFlags().Has(mad.RMPPLast) {
		t.Fatalf("sent %v", first.RMPPHeader())
	}
	if wait := table.Next().Sub(now); wait != table.cfg.Timeout {
		t.Errorf("waits %v for an ACK, not %v", wait, table.cfg.Timeout)
	}
	table.Take(now, control(first, mad.RMPPAck, mad.RMPPNormal, 1, 65), party(7), s)
	if second := s.one(t); second.SegmentNumber() != 2 {
		t.Fatalf("sent %v", second.RMPPHeader())
	}
	step()
	s.none(t)
	step()
	if third := s.one(t); third.SegmentNumber() != 3 || third.RMPPFlags().Has(mad.RMPPLast) {
		t.Fatalf("sent %v", third.RMPPHeader())
	}
	// A long time without a step, as when the machine is busy, is not the peer's.
	now = now.Add(10 * table.cfg.Timeout)
	table.Expire(now, s)
	if last := s.one(t); last.SegmentNumber() != 4 || !last.RMPPFlags().Has(mad.RMPPLast) || last.PayloadLength() != 20+30 {
		t.Fatalf("sent %v", last.RMPPHeader())
	}
	if s := table.Stats(); s.Resent != 0 {
		t.Errorf("sent %d again", s.Resent)
	}
}

// TestTurns has two sources that pause: each has its turn before the other has two.
func TestTurns(t *testing.T) {
	table, s := newTable(t, Config{Step: 1}), &sink{}
	for lid := range ib.LID(2) {
		src := &stepped{steps: make([]int, 10)}
		if err := table.Send(epoch, party(lid+1), head(5, mad.MethodGetTableResp), src, Unknown, s); err != nil {
			t.Fatal(err)
		}
	}
	now := epoch
	left := func(lid ib.LID) int {
		x := table.sessions[place{Key{5, lid, 1, mad.MethodGetTableResp}, true}]
		if x == nil {
			t.Fatal("it is over")
		}
		return len(x.send.src.(*stepped).steps)
	}
	for left(1)+left(2) > 2 {
		if now.Before(table.Next()) {
			now = table.Next()
		}
		table.Expire(now, s)
		if d := left(1) - left(2); d < -1 || d > 1 {
			t.Fatalf("the first has %d steps left, the other %d", left(1), left(2))
		}
	}
}

// giving gives up after some segments.
type giving struct{ left int }

func (g *giving) Fill(seg []byte) (int, Then) {
	if g.left == 0 {
		return 0, ThenGiveUp
	}
	g.left--
	return len(seg), ThenMore
}

// TestGiveUp has a source that gives up, before and after segments were sent. The sent segments never look like the end of
// a message.
func TestGiveUp(t *testing.T) {
	for left := range 8 {
		table, s := newTable(t, Config{}), &sink{}
		if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), &giving{left}, Unknown, s); err != nil {
			t.Fatal(err)
		}
		sent := s.take()
		if len(s.ended) == 0 {
			table.Take(epoch, control(&sent[0], mad.RMPPAck, 0, 1, 65), party(7), s)
			sent = append(sent, s.take()...)
		}
		want := max(0, left-1)
		if len(s.ended) != 1 || s.ended[0].Cause != Stopped || s.ended[0].Status != mad.RMPPResX || int(s.ended[0].Sent) != want {
			t.Fatalf("%d made: ended %+v", left, s.ended)
		}
		if want == 0 {
			if len(sent) != 0 {
				t.Errorf("%d made: sent %v", left, headers(sent))
			}
			continue
		}
		stop := &sent[len(sent)-1]
		if len(sent) != want+1 || stop.RMPPType() != mad.RMPPStop || stop.RMPPStatus() != mad.RMPPResX || stop.Method() != mad.MethodGetTableResp {
			t.Errorf("%d made: sent %v", left, headers(sent))
		}
		for i := range sent[:want] {
			if sent[i].RMPPFlags().Has(mad.RMPPLast) {
				t.Errorf("%d made: segment %d is the last", left, i+1)
			}
		}
	}
}

// TestNoOldBytes sends a short segment from the place of an earlier, longer one. The bytes after its data are 0, not the
// data of another requester.
func TestNoOldBytes(t *testing.T) {
	table, s := newTable(t, Config{}), &sink{}
	for i, n := range []int{5000, 30} {
		data := bytes.Repeat([]byte{0xFF}, n)
		if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), NewBytes(data), n, s); err != nil {
			t.Fatal(err)
		}
		segs := s.take()
		for len(s.ended) == i {
			n := uint32(len(segs))
			table.Take(epoch, control(&segs[0], mad.RMPPAck, mad.RMPPNormal, n, n+64), party(7), s)
			segs = append(segs, s.take()...)
		}
		if got, err := Reassemble(segs); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestRepeat has the requester ask again before it has heard anything, and after.
func TestRepeat(t *testing.T) {
	table, s := newTable(t, Config{}), &sink{}
	request := head(5, mad.MethodGetTable)
	key := AnswerKey(request, 7, 1)
	if table.Repeat(key, s) {
		t.Error("an answer is on its way before there is one")
	}
	if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), NewBytes(make([]byte, 1000)), 1000, s); err != nil {
		t.Fatal(err)
	}
	first := *s.one(t)
	if err := table.Send(epoch, party(7), head(5, mad.MethodGetTableResp), NewBytes(nil), 0, s); err != ErrBusy { //nolint:errorlint // returned as it is
		t.Errorf("sent twice: %v", err)
	}
	if !table.Repeat(key, s) || *s.one(t) != first {
		t.Error("segment 1 was not sent again")
	}
	table.Take(epoch, control(&first, mad.RMPPAck, mad.RMPPNormal, 1, 2), party(7), s)
	s.one(t)
	if !table.Repeat(key, s) {
		t.Error("no answer is on its way")
	}
	s.none(t)
	for _, k := range []Key{
		{TID: 6, LID: 7, QP: 1, Method: mad.MethodGetTableResp},
		{TID: 5, LID: 8, QP: 1, Method: mad.MethodGetTableResp},
		{TID: 5, LID: 7, QP: 2, Method: mad.MethodGetTableResp},
		{TID: 5, LID: 7, QP: 1, Method: mad.MethodGetMultiResp},
	} {
		if table.Repeat(k, s) {
			t.Errorf("%+v is taken for another", k)
		}
	}
}
