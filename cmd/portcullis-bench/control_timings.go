package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// timings are how long many requests, or their effects, took. It may be used by several goroutines.
type timings struct {
	mu      sync.Mutex
	took    []time.Duration
	began   time.Time // of the first
	ended   time.Time // of the last
	refused int       // answers that said to come back
}

// since adds what began at a moment and has ended now.
func (t *timings) since(began time.Time) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took = append(t.took, now.Sub(began))
	if t.began.IsZero() || began.Before(t.began) {
		t.began = began
	}
	t.ended = now
}

func (t *timings) refuse() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused++
}

// summary is what a table shows of timings.
type summary struct {
	n         int
	refused   int
	all       float64 // seconds from the beginning of the first to the end of the last
	p50, p99  float64 // milliseconds
	most      float64
	perSecond float64
}

func (t *timings) summary() (s summary) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.n, s.refused = len(t.took), t.refused
	if s.n == 0 {
		return s
	}
	sorted := slices.Sorted(slices.Values(t.took))
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	s.p50, s.p99, s.most = ms(sorted[rank(s.n, 50)]), ms(sorted[rank(s.n, 99)]), ms(sorted[s.n-1])
	s.all = t.ended.Sub(t.began).Seconds()
	s.perSecond = float64(s.n) / max(s.all, 1e-9)
	return s
}

// rank is the position, in n sorted values, of the smallest one that percent of a hundred are not above. n is 1 or more.
func rank(n, percent int) int { return (n*percent+99)/100 - 1 }

func (s *summary) line() string {
	return fmt.Sprintf("%d in %.1f s, %.0f a second; %.1f ms, p99 %.1f ms, %.1f ms at most; %d refused", s.n, s.all, s.perSecond, s.p50, s.p99, s.most, s.refused)
}
