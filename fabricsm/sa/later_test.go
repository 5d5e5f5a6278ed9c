package sa_test

import (
	"fmt"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// crowd is a small fabric where much is registered.
type crowd struct {
	tb    testing.TB
	stage *testbed.Stage
	agent *sa.Agent
	now   time.Time
	tid   ib.TID
	out   sa.Output
}

func newCrowd(tb testing.TB) *crowd {
	tb.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 8})
	if err != nil {
		tb.Fatal(err)
	}
	cfg := sa.DefaultConfig()
	cfg.Key = saKey
	cfg.Limiter.Administration, cfg.Limiter.Work = limiter.LaneConfig{}, limiter.WorkConfig{}
	s, err := testbed.New(testbed.Options{Netlist: l, SM: sm.DefaultConfig(), SA: &cfg, Seed: 7})
	if err != nil {
		tb.Fatal(err)
	}
	s.Start()
	s.Want(sm.Intent{Revision: 1})
	if err := s.Settle(time.Minute); err != nil {
		tb.Fatal(err)
	}
	return &crowd{tb: tb, stage: s, agent: s.Administration(), now: testbed.Epoch.Add(s.Now())}
}

// ask passes a request of a host to the agent.
func (c *crowd) ask(host string, qp uint32, method mad.Method, attr mad.AttrID, mask mad.ComponentMask, fill func([]byte) error) {
	c.tb.Helper()
	c.tid++
	p := transport.Packet{LID: c.stage.Fabric.PortInfo(host, 1).LID, QP: qp}
	p.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: method, TID: c.tid, Attr: attr})
	p.MAD.SetSAKey(saKey)
	p.MAD.SetComponentMask(mask)
	if err := fill(p.MAD.SAData()); err != nil {
		c.tb.Fatal(err)
	}
	c.agent.Take(c.now, &p, &c.out)
}

// services registers n services of a host.
func (c *crowd) services(n int) {
	c.tb.Helper()
	for i := range n {
		rec := mad.ServiceRecord{ServiceID: ib.ServiceID(i + 1), ServiceGID: ib.MakeGID(ib.DefaultPrefix, c.stage.GUID("h1", 1)), ServiceLease: mad.LeaseForever}
		copy(rec.ServiceName[:], fmt.Sprintf("service %d", i+1))
		c.ask("h1", 1, mad.MethodSet, mad.AttrServiceRecord, 0x53, func(b []byte) error { return mad.Encode(b, &rec) })
		if len(c.out.Held) != 1 || c.out.Held[0].MAD.Status() != mad.StatusOK {
			c.tb.Fatalf("service %d is not registered: %+v", i, c.out.Events)
		}
		c.out.Reset()
	}
}

// named asks for a service by its name, which needs a look at all services.
func (c *crowd) named(qp uint32, i int) {
	c.tb.Helper()
	const byName = 1 << 6
	var rec mad.ServiceRecord
	copy(rec.ServiceName[:], fmt.Sprintf("service %d", i))
	c.ask("h2", qp, mad.MethodGet, mad.AttrServiceRecord, byName, func(b []byte) error { return mad.Encode(b, &rec) })
}

// goOn lets the agent do the work that is due.
func (c *crowd) goOn() {
	c.now = c.now.Add(time.Microsecond)
	c.agent.Expire(c.now, &c.out)
}

// subscribers has each host subscribe so often, from different queue pairs.
func (c *crowd) subscribers(each int) (all int) {
	c.tb.Helper()
	info := mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: mad.AllTraps, ProducerType: mad.AllProducers}
	for h := 1; h < 8; h++ {
		for i := range each {
			c.ask(fmt.Sprintf("h%d", h), uint32(i+2), mad.MethodSet, mad.AttrInformInfo, 0, func(b []byte) error { return mad.Encode(b, &info) })
			if len(c.out.Held) != 1 || c.out.Held[0].MAD.Status() != mad.StatusOK {
				c.tb.Fatalf("subscription %d is not made: %+v", i, c.out.Events)
			}
			c.out.Reset()
			all++
		}
	}
	return all
}

// notice makes a device report an event that every port may know.
func (c *crowd) notice() {
	lid := c.stage.Fabric.PortInfo("h1", 1).LID
	n := mad.Notice{NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: 1, TrapNumber: 144, IssuerLID: lid}}
	c.agent.Forward(c.now, lid, &n, &c.out)
}

// TestLongGetsTakeTurns: a Get that has to look at much holds the agent for a stride at a
// time, others are answered in between, and all of them in the end.
func TestLongGetsTakeTurns(t *testing.T) {
	c := newCrowd(t)
	const all = 6 * sa.Stride
	c.services(all)
	calls := 0
	bounded := func(do func()) {
		t.Helper()
		was := c.agent.Worked()
		do()
		calls++
		if n := c.agent.Worked() - was; n > sa.Stride {
			t.Fatalf("a call looked at %d records, want at most %d", n, sa.Stride)
		}
	}
	bounded(func() { c.named(7, all) })
	bounded(func() { c.named(8, all) })
	bounded(func() { c.named(9, all+1) })
	if len(c.out.Send) != 0 {
		t.Fatalf("answered at once: %v", c.out.Send[0].MAD.Status())
	}
	again := c.tid
	bounded(func() { c.tid--; c.named(9, all+1) }) // a client that asks again
	bounded(func() { c.ask("h3", 1, mad.MethodGet, mad.AttrClassPortInfo, 0, func([]byte) error { return nil }) })
	if len(c.out.Send) != 1 || c.out.Send[0].LID != c.stage.Fabric.PortInfo("h3", 1).LID {
		t.Fatalf("who asks for little has %d answers", len(c.out.Send))
	}
	c.out.Reset()
	bounded(func() { c.named(10, 1) })
	if len(c.out.Send) != 1 {
		bounded(func() { c.named(11, 2) })
		if n := len(c.out.Send); n != 1 || c.out.Send[0].MAD.Status() != mad.StatusBusy {
			t.Fatalf("a fifth Get that waits has %d answers", n)
		}
	}
	c.out.Reset()
	for c.agent.Worked(); !c.agent.Next().IsZero() && !c.agent.Next().After(c.now.Add(time.Microsecond)); {
		bounded(c.goOn)
	}
	status := make(map[uint32]mad.Status)
	for i := range c.out.Send {
		p := &c.out.Send[i]
		if _, twice := status[p.QP]; twice {
			t.Errorf("queue pair %d is answered twice", p.QP)
		}
		status[p.QP] = p.MAD.Status()
		if p.QP == 9 && p.MAD.TID() != again {
			t.Errorf("answered is transaction %v, want %v", p.MAD.TID(), again)
		}
	}
	for qp, want := range map[uint32]mad.Status{7: mad.StatusOK, 8: mad.StatusOK, 9: mad.StatusNoRecords, 10: mad.StatusOK} {
		if got, ok := status[qp]; !ok || got != want {
			t.Errorf("queue pair %d is answered %v (%v), want %v", qp, got, ok, want)
		}
	}
	if calls < 4*all/sa.Stride {
		t.Errorf("%d calls for four looks at all", calls)
	}
}

// TestNoticesTakeTurns: a notice that many want goes out a stride at a time, to each of
// them.
func TestNoticesTakeTurns(t *testing.T) {
	c := newCrowd(t)
	all := c.subscribers(1000)
	c.notice()
	first, calls := c.agent.Status().Reports.Queued, 0
	for ; calls < 100 && !c.agent.Next().After(c.now.Add(time.Microsecond)); calls++ {
		c.goOn()
	}
	s := c.agent.Status().Reports
	if first == 0 || first > 2100 || calls < 2 || s.Queued != all || s.Dropped != 0 {
		t.Errorf("%d of %d are in queues at once, then %d in %d calls, %d dropped", first, all, s.Queued, calls, s.Dropped)
	}
}

// hold measures the longest call of an agent until nothing is due.
func (c *crowd) hold(b *testing.B, begin func()) (longest time.Duration) {
	at := time.Now()
	begin()
	longest = time.Since(at)
	for n := c.agent.Next(); !n.IsZero() && !n.After(c.now.Add(time.Microsecond)); n = c.agent.Next() {
		at = time.Now()
		c.goOn()
		longest = max(longest, time.Since(at))
		if len(c.out.Send) > 0 {
			break
		}
	}
	c.out.Reset()
	return longest
}

// BenchmarkHold is how long one Get among 60,000 services, and one notice to 56,000
// subscribers, take, and how long of that the agent is held in one call.
func BenchmarkHold(b *testing.B) {
	for name, begin := range map[string]func(*crowd) func(){
		"get": func(c *crowd) func() {
			c.services(60_000)
			return func() { c.named(7, 60_000) }
		},
		"notice": func(c *crowd) func() {
			c.subscribers(8_000)
			return c.notice
		},
	} {
		b.Run(name, func(b *testing.B) {
			c := newCrowd(b)
			do := begin(c)
			longest := time.Duration(0)
			for b.Loop() {
				longest = max(longest, c.hold(b, do))
			}
			b.ReportMetric(float64(longest.Microseconds()), "µs-longest/call")
		})
	}
}

// The status costs the same however much is registered, and later changes do not affect it: a reader delays no request.
func TestStatusIsASnapshot(t *testing.T) {
	c := newCrowd(t)
	few := testing.AllocsPerRun(20, func() { c.agent.Status() })
	c.services(2000)
	before := c.agent.Status()
	if many := testing.AllocsPerRun(20, func() { c.agent.Status() }); many > few {
		t.Errorf("with 2,000 services a look allocates %v times, with none %v times", many, few)
	}
	c.services(2100)
	if n, now := before.Registered.Services.Len(), c.agent.Status().Registered.Services.Len(); n != before.Services || now <= n {
		t.Errorf("the look before holds %d services, counted %d, and now there are %d", n, before.Services, now)
	}
}
