// Package storage opens the store of the service, waits for it while it is away, and reports how it is until the service ends.
package storage

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"portcullis/api/store"
)

// Pause is the rest before a store that did not answer is asked again.
const Pause = time.Second

// Waiter has a start wait for the store.
type Waiter struct {
	Log    *slog.Logger
	Status func(line string) // called with what is waited for
}

// Answered calls f, and again while the store is away. Other errors, and those after ctx has ended, are returned. why says
// what the store is asked for.
func (w *Waiter) Answered(ctx context.Context, why string, f func() error) error {
	again := func(err error) bool {
		if ctx.Err() != nil || !errors.Is(err, store.ErrAway) && !errors.Is(err, context.DeadlineExceeded) {
			return false
		}
		w.Log.Error("the start waits for the store", "why", why, "error", err, "retry_in", Pause)
		w.Status("waits for the store, " + why)
		return true
	}
	return Retry(ctx, f, again)
}

// Retry calls f, and again after Pause while it returns an error and again says so. It returns the last error, or why ctx
// ended.
func Retry(ctx context.Context, f func() error, again func(error) bool) error {
	for {
		err := f()
		if err == nil || !again(err) {
			return err
		}
		select {
		case <-time.After(Pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
