package anchor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/events"
)

// What was reported of a sink ends after a start, too: once it is written again, or because it is not configured any more. It does not while
// another sink of the kind fails, and not because another instance, which has a file of the same name, starts.
func TestReportedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, good, bad, worse := newStore(), &slate{name: "good"}, &slate{name: "bad", err: errors.New("disk full")}, &slate{name: "worse", err: errors.New("gone")}
		during := func(alone bool, what func(), sinks ...Sink) {
			t.Helper()
			k := newKeeper(s, sinks...)
			k.o.Alone = alone
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { k.Run(ctx); close(done) }()
			<-time.After(30 * time.Minute)
			what()
			<-time.After(30 * time.Minute)
			synctest.Wait()
			cancel()
			<-done
		}
		wants := func(what string, failing, written uint64) {
			t.Helper()
			for kind, want := range map[string]uint64{events.AnchorsFailing: failing, events.AnchorsWritten: written} {
				got := uint64(0)
				for _, e := range told(t, s, kind) {
					got += e.Count
				}
				if got != want {
					t.Errorf("%s: %d times %s, want %d", what, got, kind, want)
				}
			}
		}
		nothing := func() {}
		happen(t, s, "ann", 3)
		during(true, func() { bad.fail(nil) }, good, bad, worse)
		wants("one of two is back", 2, 0)
		worse.fail(nil)
		during(false, nothing, good, bad, worse)
		wants("another instance", 2, 0)
		during(true, nothing, good, bad, worse)
		wants("the next start", 2, 1)
		during(true, nothing, good, bad, worse)
		wants("one more", 2, 1)
		bad.fail(errors.New("disk full"))
		during(true, nothing, good, bad)
		during(true, nothing, good)
		wants("not configured", 3, 2)
	})
}
