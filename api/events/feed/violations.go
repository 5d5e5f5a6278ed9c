package feed

import (
	"context"
	"errors"
	"time"

	v1 "portcullis/api/v1"
)

// violationsEvery is how often a stream looks whether violations changed.
const violationsEvery = 200 * time.Millisecond

// besides begins the messages that come besides events, if the client wants any. It returns what ends them.
func (w *writer) besides(ctx context.Context) (end func()) {
	if !w.query.Violations {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.violations(ctx)
	}()
	return func() {
		cancel()
		<-over
	}
}

// violations sends a message now and each time that the violations changed, until ctx ends. A client that does not read gets fewer.
func (w *writer) violations(ctx context.Context) {
	look := w.feed.Violations
	if look == nil {
		look = func() (uint64, error) { return 0, errors.New("no Subnet Manager in this process") }
	}
	tick := time.NewTicker(violationsEvery)
	defer tick.Stop()
	var sum uint64
	var live, sent bool
	for {
		next, err := look()
		if seen := err == nil; !sent || seen != live || seen && next != sum {
			// Where it finds no room, the events find none either, and end the stream.
			sent = w.put(ctx, message(Violations, "", v1.EventsViolations{Live: seen})) == ""
			sum, live = next, seen
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
