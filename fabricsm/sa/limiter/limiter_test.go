package limiter_test

import (
	"math/rand/v2"
	"testing"
	"time"

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

// query is a question to subnet administration.
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

// TestTenantKeepsItsShare lets a tenant with 1000 ports flood, and another one with one
// port ask for less than half of the lane: all of that passes. And what passes of all is
// never more than the lane has.
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
		if i%25 == 0 { // 40,000 a second, at times that say nothing
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
