package lonesm

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/fabric/query"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/violation"
	"portcullis/fabricsm/transport"
)

func TestEventName(t *testing.T) {
	t.Parallel()
	for e, want := range map[sm.Event]string{
		&sm.Settled{}: "settled", &sm.PortPlaced{}: "port-placed", &sm.ForeignSM{}: "foreign-sm",
		&sm.SMInfoRefused{}: "sminfo-refused", &sm.DuplicateGUID{}: "duplicate-guid",
	} {
		if got := query.EventName(e); got != want {
			t.Errorf("%T is called %q, want %q", e, got, want)
		}
	}
}

// silent is a port that takes everything and sends only what the test sets.
type silent struct {
	transport.Port
	next transport.Packet
}

func (*silent) Send(p []transport.Packet) (int, error) { return len(p), nil }

func (s *silent) Receive(p []transport.Packet) (int, error) {
	return copy(p, []transport.Packet{s.next}), nil
}

func packet(h mad.Header) transport.Packet {
	p := transport.Packet{}
	mad.NewSMP(&p.MAD, h, nil, ib.MKey{})
	return p
}

func TestMeterCountsRequests(t *testing.T) {
	t.Parallel()
	m := &meter{Port: &silent{}, began: time.Now()}
	active := packet(mad.Header{Method: mad.MethodSet, Attr: mad.AttrPortInfo})
	active.MAD.Data()[stateOffset] = byte(ib.PortActive) | 0x50
	if _, err := m.Send([]transport.Packet{
		packet(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}),
		packet(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}),
		packet(mad.Header{Method: mad.MethodGetResp, Attr: mad.AttrSMInfo}),
		active,
	}); err != nil {
		t.Fatal(err)
	}
	r := m.report()
	for i := range r.Kinds {
		r.Kinds[i].First, r.Kinds[i].Last = 0, 0
	}
	want := smpReport{Total: 3, Kinds: []kindCount{
		{Method: "Get", Attribute: "NodeInfo", Sent: 2},
		{Method: "Set", Attribute: "PortInfo", State: ib.PortActive.String(), Sent: 1},
	}}
	if d := cmp.Diff(want, r); d != "" {
		t.Errorf("report (-want +got):\n%s", d)
	}
}

func TestCause(t *testing.T) {
	t.Parallel()
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	wire, c := &meter{Port: &silent{}, sent: 100}, &cause{}
	check := func(when string, now time.Time, wantTook time.Duration, wantSMPs uint64) {
		t.Helper()
		took, smps := c.until(now, wire.requests())
		wire.answered()
		if took != wantTook || smps != wantSMPs {
			t.Errorf("%s: %v and %d SMPs, want %v and %d", when, took, smps, wantTook, wantSMPs)
		}
	}
	c.event(at(0), &sm.PortGone{}, wire)
	wire.sent += 5
	c.event(at(3), &sm.PortPlaced{}, wire)
	check("from the first event", at(10), 10*time.Millisecond, 5)

	wire.trapped(at(1000))
	wire.sent += 2
	wire.trapped(at(1001))
	c.event(at(1004), &sm.PortGone{}, wire)
	check("from the first trap", at(1010), 10*time.Millisecond, 2)

	wire.trapped(at(2000))
	c.event(at(9000), &sm.PortGone{}, wire)
	check("not from a trap long before", at(9001), time.Millisecond, 0)

	c.begin(at(10000), wire.requests())
	c.forget()
	c.event(at(11000), &violation.TrapReceived{}, wire)
	c.event(at(12000), &sm.PortGone{}, wire)
	check("not from what had no effect", at(12002), 2*time.Millisecond, 0)
}
