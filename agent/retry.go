package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	backoffFirst = 250 * time.Millisecond
	backoffMost  = 15 * time.Second
)

// retry calls f until it succeeds, fails permanently or ctx ends, and waits in between: twice as long each time, plus up to
// a quarter so that a rack of hosts does not return at the same time. When ctx ends, the error is the last one of f.
func (r *run) retry(ctx context.Context, what string, f func() error, again func(error) bool) error {
	wait := backoffFirst
	var last error
	for {
		err := f()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil && last != nil && isContext(err) {
			return last
		}
		if ctx.Err() != nil || !again(err) {
			return err
		}
		last = err
		pause := wait + rand.N(wait/4)
		r.log.Warn(what, "error", err, "retry_in", pause.Round(time.Millisecond))
		if !sleep(ctx, pause) {
			return last
		}
		wait = min(2*wait, backoffMost)
	}
}

func isContext(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// sleep reports whether the pause passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
