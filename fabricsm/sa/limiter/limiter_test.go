package limiter_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/limiter"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func config(all, node limiter.Allowance) limiter.Config {
	c := limiter.DefaultConfig()
	c.Administration = limiter.LaneConfig{All: all, Node: node}
	return c
}

func newLimiter(t testing.TB, c limiter.Config, n *limiter.Nodes) *limiter.Limiter {
	t.Helper()
	l, err := limiter.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if n != nil {
		l.SetNodes(n)
	}
	return l
}

func add(t testing.TB, n *limiter.Nodes, lid ib.LID, lmc ib.LMC, tenant limiter.Tenant) {
	t.Helper()
	if err := n.Add(lid, lmc, tenant); err != nil {
		t.Fatal(err)
	}
}

// query is a request to subnet administration.
func query(lid ib.LID) limiter.Packet {
	return limiter.Packet{LID: lid, Class: mad.ClassSubnAdm, Method: mad.MethodGet, Length: mad.Size}
}

// TestNodePassesAtMostRateAndBurst floods from one node at random moments: in every
// stretch of time no more passes than its rate and burst allow, and nearly as much.
func TestNodePassesAtMostRateAndBurst(t *testing.T) {
	const rate, burst = 1000, 50
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var n limiter.Nodes
		add(t, &n, 8, 1, 0)
		l := newLimiter(t, config(limiter.Allowance{}, limiter.Allowance{Rate: rate, Burst: burst}), &n)
		var passed []time.Duration
		at := time.Duration(0)
		for at < 2*time.Second {
			at += time.Duration(rnd.Int64N(int64(time.Millisecond)))
			if l.Admit(start.Add(at), query(8+ib.LID(rnd.IntN(2)))) == limiter.Pass {
				passed = append(passed, at)
			}
		}
		for i := range passed {
			for j := i; j < len(passed); j++ {
				if most := burst + float64(rate)*(passed[j]-passed[i]).Seconds(); float64(j-i+1) > most+1e-6 {
					t.Fatalf("seed %d: %d passed in %v, at most %.3f may", seed, j-i+1, passed[j]-passed[i], most)
				}
			}
		}
		if least := rate * 19 / 10; len(passed) < least {
			t.Errorf("seed %d: %d passed in 2 s, want at least %d", seed, len(passed), least)
		}
	}
}

// TestTenantKeepsItsShare lets a tenant with 1000 ports flood. Another tenant with one port sends less than half of the
// rate of the lane, and all of that passes. All passed packets together never exceed the rate of the lane.
func TestTenantKeepsItsShare(t *testing.T) {
	const rate, burst = 100_000, 4096
	var n limiter.Nodes
	for i := range ib.LID(1000) {
		add(t, &n, 100+i, 0, 1)
	}
	add(t, &n, 50, 0, 2)
	l := newLimiter(t, config(limiter.Allowance{Rate: rate, Burst: burst}, limiter.Allowance{}), &n)
	rnd := rand.New(rand.NewPCG(1, 2))
	passed, asked, flood := 0, 0, 0
	const step = time.Microsecond
	const steps = 2_000_000
	for i := range steps {
		now := start.Add(time.Duration(i) * step)
		for range 2 { // two million a second
			if l.Admit(now, query(100+ib.LID(rnd.IntN(1000)))) == limiter.Pass {
				flood++
			}
		}
		if i%25 == 0 { // 40,000 a second
			asked++
			if l.Admit(now, query(50)) == limiter.Pass {
				passed++
			}
		}
	}
	if passed != asked {
		t.Errorf("of %d questions of the tenant that asks for less than its share %d passed", asked, passed)
	}
	if all, most := passed+flood, 2*rate+burst; all > most || all < most*98/100 {
		t.Errorf("%d passed in 2 s, want just below %d", all, most)
	}
}

func TestFloodLeavesOthersAlone(t *testing.T) {
	var n limiter.Nodes
	add(t, &n, 1, 0, 0)
	add(t, &n, 2, 0, 0)
	l := newLimiter(t, limiter.DefaultConfig(), &n)
	dropped := uint64(0)
	for i := range 1_000_000 {
		now := start.Add(time.Duration(i) * time.Microsecond)
		if l.Admit(now, query(1)) != limiter.Pass {
			dropped++
		}
		if i%1000 == 0 {
			if v := l.Admit(now, query(2)); v != limiter.Pass {
				t.Fatalf("question %d of the other: %v", i, v)
			}
			trap := query(2)
			trap.Class, trap.Method = mad.ClassSubn, mad.MethodTrap
			if v := l.Admit(now, trap); i%10_000 == 0 && v != limiter.Pass {
				t.Fatalf("trap %d of the other: %v", i, v)
			}
			answer := query(1)
			answer.Method, answer.Expected = mad.MethodReportResp, true
			if v := l.Admit(now, answer); v != limiter.Pass {
				t.Fatalf("answer that we wait for: %v", v)
			}
		}
	}
	if got := l.Total(limiter.Administration, limiter.NodeRate); got != dropped || dropped < 900_000 {
		t.Errorf("%d dropped by count, %d by verdict", got, dropped)
	}
	var told []limiter.Drops
	l.Told(func(d limiter.Drops) {
		if d.LID == 1 {
			told = append(told, d)
		}
	})
	if len(told) != 1 || told[0].Count != dropped || told[0].Why != limiter.NodeRate {
		t.Errorf("told %+v, want %d of LID 1", told, dropped)
	}
	l.Told(func(d limiter.Drops) { t.Errorf("told once more: %+v", d) })
}

// TestClockGoesBackwards: a clock that is set back neither opens the door nor shuts it.
func TestClockGoesBackwards(t *testing.T) {
	l := newLimiter(t, config(limiter.Allowance{Rate: 1000, Burst: 2000}, limiter.Allowance{Rate: 10, Burst: 10}), nil)
	pass := func(at time.Duration) bool { return l.Admit(start.Add(at), query(1)) == limiter.Pass }
	for range 10 {
		if !pass(time.Hour) {
			t.Fatal("the burst does not pass")
		}
	}
	for i := range 1000 {
		if jitter := time.Hour - time.Duration(i%2)*time.Millisecond; pass(jitter) {
			t.Fatal("a clock that trembles gives more")
		}
	}
	if pass(0) {
		t.Fatal("a clock that was set back gives more at once")
	}
	if !pass(100 * time.Millisecond) {
		t.Fatal("a clock that was set back gives nothing afterwards")
	}
}

func TestAdmitAllocatesNothing(t *testing.T) {
	var n limiter.Nodes
	add(t, &n, 1, 0, 0)
	l := newLimiter(t, limiter.DefaultConfig(), &n)
	now := start
	if got := testing.AllocsPerRun(100_000, func() {
		now = now.Add(time.Microsecond)
		l.Admit(now, query(1))
		l.Admit(now, query(77))
	}); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

// TestLaneNeverPassesMore sends from random sources, with lanes of several sizes. In no period do more packets pass in
// total than the lane's rate and burst allow.
func TestLaneNeverPassesMore(t *testing.T) {
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		var n limiter.Nodes
		tenants := 1 + rnd.IntN(200)
		for i := range ib.LID(500) {
			add(t, &n, 1+i, 0, limiter.Tenant(rnd.IntN(tenants)))
		}
		rate, burst := 5000+rnd.IntN(50_000), limiter.MaxTenants+1+rnd.IntN(2000)
		l := newLimiter(t, config(limiter.Allowance{Rate: rate, Burst: burst}, limiter.Allowance{Rate: 2000, Burst: 100}), &n)
		var passed []time.Duration
		at := time.Duration(0)
		for at < 400*time.Millisecond {
			at += time.Duration(rnd.Int64N(int64(8 * time.Microsecond)))
			if l.Admit(start.Add(at), query(ib.LID(rnd.IntN(600)))) == limiter.Pass {
				passed = append(passed, at)
			}
		}
		for i := 0; i < len(passed); i += 97 {
			for j := i; j < len(passed); j++ {
				if most := float64(burst) + float64(rate)*(passed[j]-passed[i]).Seconds(); float64(j-i+1) > most+1e-6 {
					t.Fatalf("seed %d: %d passed in %v, at most %.3f may", seed, j-i+1, passed[j]-passed[i], most)
				}
			}
		}
		if len(passed) < burst/2 {
			t.Errorf("seed %d: only %d passed", seed, len(passed))
		}
	}
}

func TestLanes(t *testing.T) {
	for _, tt := range []struct {
		p    limiter.Packet
		want limiter.Lane
	}{
		{limiter.Packet{Class: mad.ClassSubnAdm, Method: mad.MethodGet}, limiter.Administration},
		{limiter.Packet{Class: mad.ClassSubnAdm, Method: mad.MethodReportResp}, limiter.Other},
		{limiter.Packet{Class: mad.ClassSubnAdm, Method: mad.MethodReportResp, Expected: true}, limiter.Ours},
		{limiter.Packet{Class: mad.ClassSubn, Method: mad.MethodTrap}, limiter.Management},
		{limiter.Packet{Class: mad.ClassSubnDR, Method: mad.MethodGet}, limiter.Management},
		{limiter.Packet{Class: mad.ClassSubnDR, Method: mad.MethodGetResp}, limiter.Other},
		{limiter.Packet{Class: mad.ClassSubnDR, Method: mad.MethodGetResp, Expected: true}, limiter.Ours},
		{limiter.Packet{Class: mad.ClassComMgt, Method: mad.MethodSend}, limiter.Other},
		{limiter.Packet{Class: mad.ClassVendorVS, Method: mad.MethodTrap}, limiter.Other},
	} {
		l := newLimiter(t, limiter.DefaultConfig(), nil)
		tt.p.LID, tt.p.Length = 5, mad.Size
		if v := l.Admit(start, tt.p); v != limiter.Pass || l.Total(tt.want, limiter.Pass) != 1 {
			t.Errorf("%v %v: %v, and not in lane %v", tt.p.Class, tt.p.Method, v, tt.want)
		}
	}
}

func TestMalformed(t *testing.T) {
	var n limiter.Nodes
	add(t, &n, 5, 0, 0)
	l := newLimiter(t, limiter.DefaultConfig(), &n)
	for _, length := range []int{0, 255, 257, 2048} {
		p := query(5)
		p.Length, p.Expected = length, length == 255
		if v := l.Admit(start, p); v != limiter.Malformed {
			t.Errorf("length %d: %v", length, v)
		}
	}
	told := 0
	l.Told(func(d limiter.Drops) {
		if told++; d.LID != 5 || d.Count != 4 || d.Why != limiter.Malformed {
			t.Errorf("told %+v", d)
		}
	})
	if told != 1 {
		t.Errorf("%d rows told, want 1", told)
	}
}

// TestNodes: all LIDs of an LMC are one node. LIDs that no port has are one node together, and so are directed routes. None
// of these may use the allowance of another.
func TestNodes(t *testing.T) {
	var n limiter.Nodes
	add(t, &n, 8, 3, 1)
	add(t, &n, 16, 0, 1)
	l := newLimiter(t, config(limiter.Allowance{}, limiter.Allowance{Rate: 1, Burst: 16}), &n)
	drain := func(lids ...ib.LID) (passed int) {
		for i := range 100 {
			if l.Admit(start, query(lids[i%len(lids)])) == limiter.Pass {
				passed++
			}
		}
		return passed
	}
	for _, tt := range []struct {
		name string
		lids []ib.LID
		want int
	}{
		{"LMC", []ib.LID{8, 9, 10, 11, 12, 13, 14, 15}, 16},
		{"another", []ib.LID{16}, 16},
		{"no node", []ib.LID{0, 7, 17, 0xBFFF, 0xC000, 0xFFFE}, 16},
		{"directed routes", []ib.LID{ib.PermissiveLID}, 16},
	} {
		if got := drain(tt.lids...); got != tt.want {
			t.Errorf("%s: %d passed, want %d", tt.name, got, tt.want)
		}
	}
	for lid, want := range map[ib.LID]uint64{8: 84, 9: 0, 16: 84, 0: 84, ib.PermissiveLID: 84} {
		if got := l.Dropped(lid); got != want {
			t.Errorf("%d dropped of LID %v, want %d", got, lid, want)
		}
	}
	n.Remove(16, 0)
	add(t, &n, 32, 0, 7)
	l.SetNodes(&n)
	if got := drain(16); got != 0 {
		t.Errorf("a LID that no port has any longer: %d passed, want 0", got)
	}
	if got := drain(32); got != 16 {
		t.Errorf("a new node: %d passed, want 16", got)
	}
	var told []ib.LID
	l.Told(func(d limiter.Drops) { told = append(told, d.LID) })
	if d := cmp.Diff([]ib.LID{8, 16, 0, ib.PermissiveLID, 32}, told); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
	for _, bad := range []struct {
		lid    ib.LID
		lmc    ib.LMC
		tenant limiter.Tenant
	}{{0, 0, 0}, {0xC000, 0, 0}, {0xBFFF, 1, 0}, {8, 8, 0}, {8, 0, limiter.MaxTenants}, {ib.PermissiveLID, 7, 0}} {
		if err := n.Add(bad.lid, bad.lmc, bad.tenant); err == nil {
			t.Errorf("LID %v with LMC %d for tenant %d was taken", bad.lid, bad.lmc, bad.tenant)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	for _, tt := range []struct {
		change func(*limiter.Config)
		want   string
	}{
		{func(c *limiter.Config) { c.Administration.All.Rate = -1 }, "rate of administration -1: want 1 to"},
		{func(c *limiter.Config) { c.Management.Node.Rate = 2_000_000_000 }, "rate of management of a node 2000000000"},
		{func(c *limiter.Config) { c.Other.All.Burst = limiter.MaxTenants }, "burst of other 1024: want 1025 to"},
		{func(c *limiter.Config) { c.Other.Node = limiter.Allowance{Rate: 1, Burst: 0} }, "burst of other of a node 0: want 1 to"},
		{func(c *limiter.Config) { c.Other.Node = limiter.Allowance{Rate: 1, Burst: 5000} }, "takes more than an hour to come back"},
		{func(c *limiter.Config) { c.Work.Node.Burst = 0 }, "burst of steps of a node 0"},
		{func(c *limiter.Config) { c.Work.PerRequest = -1 }, "steps of a request -1"},
	} {
		c := limiter.DefaultConfig()
		tt.change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %s", err, tt.want)
		}
		if _, err := limiter.New(c); err == nil {
			t.Errorf("%s: made anyway", tt.want)
		}
	}
}

func TestAllowanceText(t *testing.T) {
	for _, tt := range []struct {
		text string
		want limiter.Allowance
	}{
		{"5000/s burst 100", limiter.Allowance{Rate: 5000, Burst: 100}},
		{"unlimited", limiter.Allowance{}},
	} {
		var a limiter.Allowance
		if err := a.UnmarshalText([]byte(tt.text)); err != nil || a != tt.want {
			t.Errorf("%q: %+v, %v", tt.text, a, err)
		}
		if got := a.String(); got != tt.text {
			t.Errorf("%q is printed as %q", tt.text, got)
		}
	}
	for _, bad := range []string{"", "5000", "5000/s", "5000/s burst", "0/s burst 1", "-1/s burst 1", "5/m burst 1", "5/s burst -1", "5/s burst 1 x", "5/s bursts 1", "99999999999/s burst 1"} {
		a := limiter.Allowance{Rate: 1, Burst: 2}
		if err := a.UnmarshalText([]byte(bad)); err == nil || a != (limiter.Allowance{Rate: 1, Burst: 2}) {
			t.Errorf("%q: %+v, %v", bad, a, err)
		}
	}
}

// TestConfigAsYAML reads a configuration as that of the service has it.
func TestConfigAsYAML(t *testing.T) {
	got := limiter.DefaultConfig()
	if err := yaml.Unmarshal([]byte("administration: {all: 9000/s burst 3000, node: unlimited}\nwork: {per_request: 5}\n"), &got); err != nil {
		t.Fatal(err)
	}
	want := config(limiter.Allowance{Rate: 9000, Burst: 3000}, limiter.Allowance{})
	want.Work.PerRequest = 5
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestWork: a request costs at most the limit for one, a node has a number of steps a second, and another node has its own.
func TestWork(t *testing.T) {
	w, err := limiter.NewWork(limiter.WorkConfig{PerRequest: 100, Node: limiter.Allowance{Rate: 1000, Burst: 250}})
	if err != nil {
		t.Fatal(err)
	}
	spend := func(at time.Duration, lid ib.LID, want int) (spent int, ok bool) {
		b, ok := w.Begin(start.Add(at), lid)
		for range want {
			if !b.Spend(1) {
				break
			}
		}
		w.End(start.Add(at), lid, b)
		return b.Spent(), ok
	}
	for _, tt := range []struct {
		at   time.Duration
		lid  ib.LID
		asks int
		want int
		ok   bool
	}{
		{0, 1, 1000, 100, true},
		{0, 1, 100, 100, true},
		{0, 1, 100, 50, true},
		{0, 1, 100, 0, false},
		{0, 2, 100, 100, true},
		{10 * time.Millisecond, 1, 100, 10, true},
		{time.Second, 1, 100, 100, true},
		{-time.Hour, 1, 100, 100, true},
		{time.Second, 0xFFFF, 100, 100, true},
	} {
		if got, ok := spend(tt.at, tt.lid, tt.asks); got != tt.want || ok != tt.ok {
			t.Errorf("LID %v at %v: %d steps, %v; want %d, %v", tt.lid, tt.at, got, ok, tt.want, tt.ok)
		}
	}
	b := w.Trusted()
	if !b.Spend(1 << 40) {
		t.Error("a trusted question has a limit")
	}
	if got := testing.AllocsPerRun(1000, func() { spend(time.Minute, 3, 10) }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func TestNames(t *testing.T) {
	seen := make(map[string]bool)
	for i := range limiter.NumLanes + 1 {
		seen[limiter.Lane(i).String()] = true
	}
	for i := range limiter.NumVerdicts + 1 {
		seen[limiter.Verdict(i).String()] = true
	}
	if want := limiter.NumLanes + limiter.NumVerdicts + 2; len(seen) != want || seen[""] {
		t.Errorf("%d names, want %d: %v", len(seen), want, seen)
	}
}

func BenchmarkAdmit(b *testing.B) {
	for _, bb := range []struct {
		name string
		lids int
		gap  time.Duration
	}{{"flood", 1, 100 * time.Nanosecond}, {"pass", 10_000, 10 * time.Microsecond}, {"scarce", 10_000, time.Microsecond}} {
		b.Run(bb.name, func(b *testing.B) {
			var n limiter.Nodes
			for i := range ib.LID(10_000) {
				add(b, &n, 1+i, 0, limiter.Tenant(i%50))
			}
			l := newLimiter(b, limiter.DefaultConfig(), &n)
			now := start
			b.ReportAllocs()
			for i := range b.N {
				now = now.Add(bb.gap)
				l.Admit(now, query(1+ib.LID(i*7919%bb.lids)))
			}
			b.ReportMetric(100*float64(l.Total(limiter.Administration, limiter.Pass))/float64(b.N), "%passed")
		})
	}
}
