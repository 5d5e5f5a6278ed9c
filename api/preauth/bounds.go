// Package preauth bounds the connections, memory and work of callers before a credential of theirs is known. Sources, which
// are addresses, share what there is, so that however many of them send what they can, a further one is served.
package preauth

import (
	"context"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"portcullis/api/limit"
)

// Bounds on memory and CPUs for requests that need no credential (accessHost), over all
// sources together: the process that answers them is the Subnet Manager, too.
const (
	unprovenBytes = 4 << 20         // of bodies in memory at once that open a session
	awaitedBytes  = 8 << 20         // of bodies that a session or a ticket waits for
	unprovenShare = 2 << 20         // of each, of one source at most
	unprovenPart  = 4               // a source has at most a quarter of what is free
	unprovenWait  = 3 * time.Second // for one of the slots
)

// Bounds bounds the memory and CPUs that requests without a credential use at once.
type Bounds struct {
	bytes   allowance // of bodies that nothing waits for
	awaited allowance // of the others: a source that knows no session and no ticket takes nothing of it
	slots   *turns    // of handshakes, and of requests that nothing waits for, while they are parsed and judged
}

// New returns the bounds of a process that works on as many handshakes and requests without a credential at once as slots says.
func New(slots int) *Bounds {
	return &Bounds{
		bytes:   allowance{free: unprovenBytes, share: unprovenShare},
		awaited: allowance{free: awaitedBytes, share: unprovenShare},
		slots:   newTurns(slots),
	}
}

// HalfOfCPUs returns the slots of a process that has other work: half of its CPUs, at least 1.
func HalfOfCPUs() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// Enter takes a slot for a source, and reports whether there was one in time. leave returns it.
func (b *Bounds) Enter(ctx context.Context, source netip.Addr) (leave func(), ok bool) {
	ctx, cancel := context.WithTimeout(ctx, unprovenWait)
	defer cancel()
	return b.slots.enter(ctx, source, maxWaitingOne)
}

// TakeBody takes memory for a body of n bytes of a source, and reports whether there was as much. A body is awaited if a session
// or a ticket waits for it. release returns the memory.
func (b *Bounds) TakeBody(source netip.Addr, n int64, awaited bool) (release func(), ok bool) {
	of := &b.bytes
	if awaited {
		of = &b.awaited
	}
	if !of.take(source, n) {
		return nil, false
	}
	return func() { of.release(source, n) }, true
}

// SourceOf returns the key that limits are kept for, for an address with port. Anything else, such as a Unix socket, is the
// zero Addr.
func SourceOf(remote string) netip.Addr {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return limit.Source(ap.Addr())
}

// allowance is a number of bytes that sources share. No source has more than its share, nor more than a part of what
// nothing holds: however many sources take what they can, a further one finds some.
type allowance struct {
	mu    sync.Mutex
	free  int64
	share int64
	held  map[netip.Addr]int64
}

// take takes n bytes for source, and reports whether there were as many.
func (a *allowance) take(source netip.Addr, n int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[source]+n > min(a.share, a.free/unprovenPart) {
		return false
	}
	if a.held == nil {
		a.held = map[netip.Addr]int64{}
	}
	a.free -= n
	a.held[source] += n
	return true
}

// release returns n bytes that source took.
func (a *allowance) release(source netip.Addr, n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.free += n
	if a.held[source] -= n; a.held[source] <= 0 {
		delete(a.held, source)
	}
}
