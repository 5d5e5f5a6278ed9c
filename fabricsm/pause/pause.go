// Package pause waits.
package pause

import (
	"context"
	"time"
)

// For waits for d. It reports false if ctx ends before, or has ended.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
