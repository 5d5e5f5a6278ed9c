package anchor

import (
	"fmt"
	"sync"
	"time"

	"portcullis/api/audit/chain"
	"portcullis/api/events"
)

// feed is what is on its way to one sink: the newest head, and nothing before it.
type feed struct {
	sink Sink
	news chan struct{} // has a token after offer

	mu              sync.Mutex
	want, done      chain.Head
	origin          string
	since           time.Time // when the sink began to lack a head; zero: it has it
	err             error     // of the last attempt
	told            bool      // there was an event that it fails
	written, failed uint64
}

// offer says which head the sink is to have.
func (f *feed) offer(head chain.Head, origin string, now time.Time) {
	f.mu.Lock()
	f.want, f.origin = head, origin
	if f.want != f.done && f.since.IsZero() {
		f.since = now
	}
	f.mu.Unlock()
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// due returns the head that the sink lacks, if it does.
func (f *feed) due() (head chain.Head, origin string, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.want, f.origin, f.want != f.done
}

// wrote notes an attempt. It reports whether it is the first that failed, or the first that did not after one.
func (f *feed) wrote(head chain.Head, err error) (failed, back bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.err
	if f.err = err; err != nil {
		f.failed++
		return was == nil, false
	}
	f.written++
	f.done, f.since = head, time.Time{}
	return false, was != nil
}

// toTell returns the type of the event that is due, and what was seen.
func (f *feed) toTell(now time.Time, after time.Duration) (kind, seen string, due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	behind := !f.since.IsZero() && f.err != nil && now.Sub(f.since) >= after
	switch {
	case behind && !f.told:
		return events.AnchorsFailing, fmt.Sprintf("none since %s: %v", f.since.UTC().Format(time.RFC3339), f.err), true
	case f.told && f.err == nil && f.since.IsZero() && f.written > 0:
		return events.AnchorsWritten, fmt.Sprintf("entry %d", f.done.Seq), true
	default:
		return "", "", false
	}
}

func (f *feed) toldOf(failing bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told = failing
}

func (f *feed) isTold() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.told
}

// State is how one sink is.
type State struct {
	Name            string
	Seq             uint64    // of the entry that was anchored last since the start; 0: none was
	Since           time.Time // when it began to lack the head; zero: it has it
	Err             error     // of the last attempt
	Written, Failed uint64    // attempts since the start
}

// States returns how the sinks are, in their order.
func (k *Keeper) States() []State {
	out := make([]State, 0, len(k.feeds))
	for _, f := range k.feeds {
		f.mu.Lock()
		out = append(out, State{Name: f.sink.Name(), Seq: f.done.Seq, Since: f.since, Err: f.err, Written: f.written, Failed: f.failed})
		f.mu.Unlock()
	}
	return out
}

// Held reports whether nothing is anchored because the state was rolled back and is in review.
func (k *Keeper) Held() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held
}
