package preauth

import (
	"context"
	"net/netip"
	"sync"
	"time"
)

// Bounds of turns.
const (
	maxWaiting    = 2048 // requests and handshakes that wait for a slot, of all sources
	maxWaitingOne = 16   // requests of one source; of handshakes as many as it may have connections
	maxUsers      = 1 << 14
	// usageHalf is the time after which what a source has used counts half.
	usageHalf = 10 * time.Second
)

// turns are slots that sources share: of those that wait, the source that has used them least goes first. So however many
// requests some sources send, one that sent few waits for one of each of them at most.
type turns struct {
	mu      sync.Mutex
	free    int
	waiting map[netip.Addr][]chan struct{} // by source, the first one first
	count   int                            // in waiting
	used    map[netip.Addr]time.Duration   // by source, while it had a slot; halved each usageHalf
	halved  time.Time
}

func newTurns(slots int) *turns {
	return &turns{free: slots, waiting: map[netip.Addr][]chan struct{}{}, used: map[netip.Addr]time.Duration{}}
}

// enter takes a slot for a source, and reports whether there was one before ctx ended. leave returns it. It refuses at once if
// as many of the source wait already as most says.
func (t *turns) enter(ctx context.Context, source netip.Addr, most int) (leave func(), ok bool) {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return t.leaver(source), true
	}
	if t.count >= maxWaiting || len(t.waiting[source]) >= most {
		t.mu.Unlock()
		return nil, false
	}
	mine := make(chan struct{})
	t.waiting[source] = append(t.waiting[source], mine)
	t.count++
	t.mu.Unlock()
	select {
	case <-mine:
		return t.leaver(source), true
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-mine: // it came meanwhile
		t.next()
	default:
		t.forget(source, mine)
	}
	return nil, false
}

// forget takes a request out of those that wait.
func (t *turns) forget(source netip.Addr, mine chan struct{}) {
	list := t.waiting[source]
	for i := range list {
		if list[i] == mine {
			t.keep(source, append(list[:i:i], list[i+1:]...))
			return
		}
	}
}

func (t *turns) keep(source netip.Addr, list []chan struct{}) {
	t.count--
	if t.waiting[source] = list; len(list) == 0 {
		delete(t.waiting, source)
	}
}

// leaver returns what returns the slot that a source has from now on.
func (t *turns) leaver(source netip.Addr) func() {
	began := time.Now()
	return func() {
		now := time.Now()
		t.mu.Lock()
		defer t.mu.Unlock()
		t.spend(source, now.Sub(began), now)
		t.next()
	}
}

// spend notes what a source used.
func (t *turns) spend(source netip.Addr, d time.Duration, now time.Time) {
	for now.Sub(t.halved) >= usageHalf {
		if now.Sub(t.halved) > 16*usageHalf {
			t.halved = now
			clear(t.used)
			break
		}
		t.halved = t.halved.Add(usageHalf)
		for s, u := range t.used {
			if t.used[s] = u / 2; u < time.Millisecond {
				delete(t.used, s)
			}
		}
	}
	if _, known := t.used[source]; known || len(t.used) < maxUsers {
		t.used[source] += d
	}
}

// next hands the slot to the source that has used least.
func (t *turns) next() {
	var least netip.Addr
	found := false
	for s := range t.waiting {
		if !found || t.used[s] < t.used[least] {
			least, found = s, true
		}
	}
	if !found {
		t.free++
		return
	}
	first := t.waiting[least][0]
	t.keep(least, t.waiting[least][1:])
	close(first)
}
