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

// asked returns a fabric of the given number of hosts in one partition, and the agent beside it.
func asked(tb testing.TB, hosts int) (*testbed.Stage, *sa.Agent) {
	tb.Helper()
	l, err := netlist.FatTree3(netlist.Shape{Hosts: hosts, Radix: 36})
	if hosts <= 36 {
		l, err = netlist.FatTree2(netlist.Shape{Hosts: hosts, Radix: 12})
	}
	if err != nil {
		tb.Fatal(err)
	}
	cfg := sa.DefaultConfig()
	cfg.Limiter.Administration.Node, cfg.Limiter.Administration.All = limiter.Allowance{}, limiter.Allowance{}
	s, err := testbed.New(testbed.Options{Netlist: l, SM: sm.DefaultConfig(), SA: &cfg, Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	s.Start()
	in := sm.Intent{Revision: 1}
	for i := 1; i < hosts; i++ {
		in.Grants = append(in.Grants, s.GrantOf(fmt.Sprintf("h%d", i), 1, 0x8001))
	}
	s.Want(in)
	if err := s.Settle(time.Hour); err != nil {
		tb.Fatal(err)
	}
	return s, s.Administration()
}

// questions are Gets of PathRecords between hosts, from many hosts.
func questions(tb testing.TB, s *testbed.Stage, hosts int) []transport.Packet {
	tb.Helper()
	out := make([]transport.Packet, 1024)
	lid := func(g ib.GUID) ib.LID { return s.View().Fabric.Port(s.View().Fabric.PortByGUID(g)).LID }
	for i := range out {
		from := s.GUID(fmt.Sprintf("h%d", 1+i*7%(hosts-1)), 1)
		to := s.GUID(fmt.Sprintf("h%d", 1+i*13%(hosts-1)), 1)
		p := &out[i]
		p.LID, p.QP = lid(from), 1
		p.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGet, TID: ib.TID(i + 1), Attr: mad.AttrPathRecord})
		mask, fill := paths(from, to)
		p.MAD.SetComponentMask(mask)
		fill(p.MAD.SAData())
	}
	return out
}

// BenchmarkPathQuestion measures the whole cost of a query for a path between receiving and sending: limiter, trust,
// partitions, path.
func BenchmarkPathQuestion(b *testing.B) {
	for _, hosts := range []int{36, 1944, 10368} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			s, a := asked(b, hosts)
			q := questions(b, s, hosts)
			var out sa.Output
			now := testbed.Epoch.Add(s.Now())
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				a.Take(now, &q[n%len(q)], &out)
				if n++; n%64 == 0 {
					out.Reset()
				}
			}
			if st := a.Stats(); st.Answers < uint64(n) {
				b.Fatalf("%d of %d questions were answered: %+v", st.Answers, n, st)
			}
		})
	}
}

func TestPathQuestionsAllocateNothing(t *testing.T) {
	s, a := asked(t, 36)
	q := questions(t, s, 36)
	var out sa.Output
	now, n := testbed.Epoch.Add(s.Now()), 0
	if avg := testing.AllocsPerRun(1000, func() {
		out.Reset()
		a.Take(now, &q[n%len(q)], &out)
		n++
	}); avg > 0 {
		t.Errorf("%v allocations a question", avg)
	}
	if len(out.Send) != 1 || out.Send[0].MAD.Status() != mad.StatusOK {
		t.Errorf("the last answer: %d packets", len(out.Send))
	}
}
