package lonesm

import (
	"context"

	"golang.org/x/sync/errgroup"

	"portcullis/fabricsm/sm"
)

// joined returns a channel of the inputs from either of two channels, in a goroutine of group.
func joined(ctx context.Context, group *errgroup.Group, a, b <-chan sm.Input) <-chan sm.Input {
	out := make(chan sm.Input)
	group.Go(func() error {
		for {
			var in sm.Input
			select {
			case in = <-a:
			case in = <-b:
			case <-ctx.Done():
				return nil
			}
			select {
			case out <- in:
			case <-ctx.Done():
				return nil
			}
		}
	})
	return out
}
