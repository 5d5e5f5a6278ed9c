package host

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	v1 "portcullis/api/v1"
)

// TestAllStops: an operator who interrupts the command in the middle has no further host changed, and learns which were not asked for.
func TestAllStops(t *testing.T) {
	t.Parallel()
	const number = 500
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var asked atomic.Int32
	hosts, errs := all(ctx, number, func(int) (*v1.Host, error) {
		if asked.Add(1) == atOnce {
			stop()
		}
		<-ctx.Done()
		return &v1.Host{}, nil
	})
	if asked.Load() != atOnce {
		t.Errorf("%d hosts are asked for, want %d", asked.Load(), atOnce)
	}
	for i := range number {
		if began := i < atOnce; began != (errs[i] == nil) || began != (hosts[i] != nil) || !began && !errors.Is(errs[i], errNotBegun) {
			t.Errorf("host %d: %v, %v", i, hosts[i], errs[i])
		}
	}
}
