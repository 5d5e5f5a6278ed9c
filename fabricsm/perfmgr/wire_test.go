package perfmgr_test

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/perfmgr"
)

// Requests are those of perfquery, as it was recorded, but for transaction and port.
func TestRequestsArePerfquerys(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../mad/testdata/frames.txt")
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[mad.AttrID]*mad.MAD{}
	for _, part := range strings.Split(string(text), "\n= ")[1:] {
		name, digits, _ := strings.Cut(part, "\n")
		if !strings.HasPrefix(name, "perfquery to ibsim: Perf Get ") {
			continue
		}
		b, err := mad.ParseHex([]byte(digits))
		if err != nil {
			t.Fatal(err)
		}
		m := mad.MAD(b)
		theirs[m.Attr()] = &m
	}
	b := newBed(t, nil)
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1)})
	seen := 0
	for range 4 {
		var ours mad.MAD
		if _, ok := b.m.Next(b.now, &ours); !ok {
			t.Fatal("no request")
		}
		want, ok := theirs[ours.Attr()]
		if ok {
			seen++
			same := ours
			same.SetTID(want.TID())
			if ours.Attr() == mad.AttrClassPortInfo { // perfquery names a port there too, which means nothing
				same[65] = want[65]
			}
			if same != *want {
				t.Errorf("ours\n%x\nperfquery's\n%x", same, *want)
			}
		}
		if seen == 2 {
			break
		}
		ours.Respond(mad.StatusOK)
		b.m.Answer(b.now, 7, &ours)
		b.now = b.m.Wake()
	}
	if seen != 2 || len(theirs) != 2 {
		t.Errorf("%d requests compared, of %d recorded", seen, len(theirs))
	}
}

// No request and no answer allocates.
func TestAllocatesNothing(t *testing.T) {
	b := newBed(t, nil)
	b.m.SetAgents(b.now, b.fleet(10))
	b.run(29e9)
	var m mad.MAD
	n := testing.AllocsPerRun(100, func() {
		b.now = b.m.Wake()
		lid, ok := b.m.Next(b.now, &m)
		if !ok {
			return
		}
		m.Respond(mad.StatusOK)
		b.m.Answer(b.now, lid, &m)
		b.m.Expire(b.now)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkPass reads a fat tree of three levels once: 10,368 adapters, and as many switch ports in front of them and 41,472 between
// switches. The devices answer at once and cost next to nothing.
func BenchmarkPass(b *testing.B) {
	m, all := tree(b)
	now := time.Unix(1_000_000, 0)
	m.SetAgents(now, all)
	var request mad.MAD
	requests := 0
	info := [8]byte{1, 1, 0x12} // 64 bits, and PortXmitWait
	pass := func() {
		for over := m.Stats().Passes + 1; m.Stats().Passes < over; {
			now = m.Wake()
			for {
				lid, ok := m.Next(now, &request)
				if !ok {
					break
				}
				requests++
				request.Respond(mad.StatusOK)
				if request.Attr() == mad.AttrClassPortInfo {
					copy(request[64:], info[:])
				}
				m.Answer(now, lid, &request)
			}
			m.Expire(now)
		}
	}
	pass()
	requests = 0
	b.ReportAllocs()
	for b.Loop() {
		pass()
	}
	b.ReportMetric(float64(requests)/float64(b.N), "requests")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(requests), "ns/request")
	b.ReportMetric(m.Stats().Between.Seconds(), "s/pass")
}

// tree returns a Manager at the default pace and the agents of 10,368 hosts: pods of 18 leaves and 18 switches above, and 324 on top.
func tree(t testing.TB) (*perfmgr.Manager, []perfmgr.Agent) {
	t.Helper()
	next := uint32(1)
	m, err := perfmgr.New(perfmgr.Options{
		Interval: 30 * time.Second, Rate: 5000, Window: 256, Timeout: time.Second,
		Draw: func() uint32 { next = next*1664525 + 1013904223; return next },
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []perfmgr.Agent
	add := func(n int, at ib.PortNum, ports ...ib.PortNum) {
		for range n {
			lid := ib.LID(len(all) + 1)
			all = append(all, perfmgr.Agent{GUID: ib.GUID(lid), At: at, LID: lid, Ports: ports})
		}
	}
	every := make([]ib.PortNum, 36)
	for i := range every {
		every[i] = ib.PortNum(i + 1)
	}
	add(10_368, 1, 1)
	add(2*576, 0, every...)
	add(288, 0, every...) // cabled to the 576 above
	return m, all
}

// Memory of what is known of such a fabric.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		m, all := tree(b)
		m.SetAgents(time.Unix(1, 0), all)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		runtime.KeepAlive(m)
	}
}
