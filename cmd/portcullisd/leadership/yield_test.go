package leadership

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/instances"
	"portcullis/api/leader"
	"portcullis/api/store"
	"portcullis/api/store/memory"
)

// TestMayWrite: the only instance may write to the fabric, and one that stands by may not.
func TestMayWrite(t *testing.T) {
	t.Parallel()
	if !MayWrite(nil) {
		t.Error("the only instance may not write")
	}
	if MayWrite(leader.New(leader.Options{Role: Role, Instance: "b"})) {
		t.Error("an instance that does not lead may write")
	}
}

// refusing is a candidate that does not step down.
type refusing struct{ Candidate }

func (refusing) StepDown(context.Context, time.Duration) error {
	return errors.New("no other instance runs that could lead")
}

// An instance without another one stays, and says so to none.
func TestYieldWithoutAnother(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for _, c := range []Candidate{nil, refusing{}} {
		y := &Yielder{Candidate: c, Lease: time.Second, Log: slog.New(slog.NewTextHandler(&log, nil))}
		y.Yield(t.Context(), time.Second, "no link")
	}
	if log.Len() > 0 {
		t.Errorf("the log says %q", &log)
	}
}

// A leader that is blind yields after blindFor, and again where no other one could lead. One that sees again before does not.
func TestBlindness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b, began := NewBlindness(), time.Now()
		var yielded []time.Duration
		reasons := map[string]bool{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.Watch(ctx, func(_ context.Context, rest time.Duration, reason string) {
				yielded = append(yielded, time.Since(began))
				reasons[reason] = rest == time.Second
			})
		}()
		b.tell("its own port has no link")
		<-time.After(time.Second)
		b.tell("") // the cable was put back
		<-time.After(5 * time.Second)
		b.tell("its own port has no link")
		<-time.After(time.Second)
		b.tell("nothing but its own adapter answers")
		<-time.After(4 * time.Second)
		cancel()
		<-done
		if want := []time.Duration{8 * time.Second, 10 * time.Second}; !slices.Equal(yielded, want) || len(reasons) != 1 || !reasons["nothing but its own adapter answers"] {
			t.Errorf("yielded at %v, want %v, for %v", yielded, want, reasons)
		}
	})
}

// An instance announces how it is reached, and again when its certificate was renewed.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var pin atomic.Value
		pin.Store([]byte{1})
		renewed := make(chan struct{}, 1)
		a := &Announcer{
			Store: store.New(memory.New(time.Now), ""), Name: "a", API: func() string { return "https://a.example:9443" }, Pin: func() []byte { return pin.Load().([]byte) },
			Manages: true, Renewed: renewed, Log: slog.New(slog.DiscardHandler),
		}
		want := func(pin byte) {
			t.Helper()
			all, err := instances.List(t.Context(), a.Store, time.Now())
			if err != nil || len(all) != 1 || all[0].Name != "a" || all[0].API != "https://a.example:9443" || !all[0].Manages || !slices.Equal(all[0].Pin, []byte{pin}) {
				t.Errorf("instances %+v, %v", all, err)
			}
		}
		if err := a.Announce(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(1)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { a.Keep(ctx); close(done) }()
		pin.Store([]byte{2})
		renewed <- struct{}{}
		synctest.Wait()
		want(2)
		pin.Store([]byte{3})
		<-time.After(announceEvery)
		synctest.Wait()
		want(3)
		cancel()
		<-done
	})
}
