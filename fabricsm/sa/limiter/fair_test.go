package limiter

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// slow is fair without a heap: it looks at all tenants at each step.
type slow struct {
	cost, room, rest int64
	owes             []int64 // by tenant
}

func (s *slow) pass(ps int64) {
	for {
		n, next := int64(0), int64(0)
		for _, o := range s.owes {
			if o > 0 {
				if n++; n == 1 || o < next {
					next = o
				}
			}
		}
		if n == 0 {
			s.rest = 0
			return
		}
		each := min((s.rest+ps)/n, next)
		for i := range s.owes {
			s.owes[i] = max(0, s.owes[i]-each)
		}
		if each < next {
			s.rest = (s.rest + ps) % n
			return
		}
		ps -= next*n - s.rest
		s.rest = 0
	}
}

func (s *slow) take(t int) bool {
	if s.owes[t] > s.room-s.cost {
		return false
	}
	s.owes[t] += s.cost
	return true
}

// TestFairIsLikeTheSlowOne compares each decision, and the debt of each tenant.
func TestFairIsLikeTheSlowOne(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		tenants := 1 + rnd.IntN(40)
		var f fair
		f.init(Allowance{Rate: 1000 + rnd.IntN(1_000_000), Burst: tenants * (1 + rnd.IntN(50))})
		f.divide(tenants)
		s := slow{cost: f.cost, room: f.room, owes: make([]int64, tenants)}
		for step := range 20_000 {
			ps := rnd.Int64N(3 * f.cost)
			if rnd.IntN(500) == 0 {
				ps *= 1000
			}
			f.pass(ps)
			s.pass(ps)
			tenant := rnd.IntN(1 + rnd.IntN(tenants))
			got := f.has(tenant)
			if got {
				f.take(tenant)
			}
			if want := s.take(tenant); got != want {
				t.Fatalf("seed %d, step %d: tenant %d may %v, want %v", seed, step, tenant, got, want)
			}
			if rnd.IntN(1000) == 0 {
				f.rebase()
			}
			for i, want := range s.owes {
				owes := int64(0)
				if f.at[i] != 0 {
					owes = f.full[i] - f.virtual
				}
				if owes != want {
					t.Fatalf("seed %d, step %d: tenant %d owes %d, want %d", seed, step, i, owes, want)
				}
			}
		}
	}
}

// TestFairNeverOverflows lets a lane be busy for years.
func TestFairNeverOverflows(t *testing.T) {
	var f fair
	f.init(Allowance{Rate: 1, Burst: slowest})
	year := int64(365 * 24 * 3600)
	passed := int64(0)
	for range 5 * year / (slowest / 2) {
		for f.has(0) {
			f.take(0)
			passed++
		}
		f.pass(slowest / 2 * second)
	}
	if most := 5*year + slowest; passed > most || passed < most-2*slowest {
		t.Errorf("%d passed in 5 years of one a second, want about %d", passed, 5*year)
	}
}

// TestMaxMin lets tenants send at different rates, and compares the result with the fair division. A tenant that sends less
// than its part gets all of it, the others get equal parts of the rest.
func TestMaxMin(t *testing.T) {
	const rate, burst, seconds = 100_000, 1000, 4
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		demand := make([]float64, 2+rnd.IntN(9))
		for i := range demand {
			demand[i] = float64(500 + rnd.IntN(1+rnd.IntN(200_000)))
		}
		var f fair
		f.init(Allowance{Rate: rate, Burst: burst})
		f.divide(len(demand))
		got := make([]float64, len(demand))
		due := make([]float64, len(demand))
		const step = 10_000_000 // picoseconds
		for range seconds * second / step {
			f.pass(step)
			// The order of requests does not affect the shares.
			for _, i := range rnd.Perm(len(demand)) {
				for due[i] += demand[i] * step / second; due[i] >= 1; due[i]-- {
					if f.has(i) {
						f.take(i)
						got[i]++
					}
				}
			}
		}
		want := divided(demand, rate)
		for i := range demand {
			g, w := got[i]/seconds, want[i]
			if g < w*0.99-1 || g > w*1.01+burst/seconds+1 {
				t.Errorf("seed %d: tenant %d of %d asks for %.0f a second and gets %.0f, want %.0f", seed, i, len(demand), demand[i], g, w)
			}
		}
	}
}

// divided is the max-min fair division of a rate.
func divided(demand []float64, rate float64) []float64 {
	order := slices.Clone(demand)
	slices.Sort(order)
	level, left := 0.0, rate
	for i, d := range order {
		level = left / float64(len(order)-i)
		if d >= level {
			break
		}
		left -= d
		level = d
	}
	out := make([]float64, len(demand))
	for i, d := range demand {
		out[i] = min(d, level)
	}
	return out
}
