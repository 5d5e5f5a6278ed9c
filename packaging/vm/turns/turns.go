//go:build vm

// Package turns decides the order in which labs run where more of them wait than may run at once: the longest first, so that
// none is left to run alone at the end.
package turns

import (
	"slices"
	"sync"
)

// Queue is where labs wait for their turns.
type Queue struct {
	mu      sync.Mutex
	free    int // turns that may begin now
	absent  int // labs that were announced and do not wait yet
	waiting []*turn
}

// turn is a lab that waits.
type turn struct {
	length int
	begins chan struct{}
}

// New returns a queue of which so many turns run at once.
func New(atOnce int) *Queue { return &Queue{free: atOnce} }

// Announce says that another lab will call Wait. No turn begins until it does, since its own could be longer.
func (q *Queue) Announce() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.absent++
}

// Wait waits until the turn of a lab begins that was announced, and returns what ends it. Of labs that wait, the longest is the
// next.
func (q *Queue) Wait(length int) (end func()) {
	t := &turn{length, make(chan struct{})}
	q.mu.Lock()
	q.absent--
	q.waiting = append(q.waiting, t)
	q.next()
	q.mu.Unlock()
	<-t.begins
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.free++
		q.next()
	})
}

// next begins the turns that can begin. The mutex is held.
func (q *Queue) next() {
	slices.SortStableFunc(q.waiting, func(a, b *turn) int { return b.length - a.length })
	for q.absent == 0 && q.free > 0 && len(q.waiting) > 0 {
		close(q.waiting[0].begins)
		q.waiting = q.waiting[1:]
		q.free--
	}
}
