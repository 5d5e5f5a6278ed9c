package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/program"
)

// drawSlowDisk has each flush of an instance's disk take long, while its network and all else
// are as fast as ever.
func drawSlowDisk(s *site, r *rand.Rand) strike {
	n, what := s.target(r)
	delay, hold := time.Duration(100+r.IntN(900))*time.Millisecond, seconds(r, 5, 12)
	var before int64
	return strike{
		what: fmt.Sprintf("disk of %s flushes %v later, for %v", what, delay, hold), hold: hold,
		begin: func(context.Context) error {
			before = n.disk.Held()
			n.disk.Slow(delay)
			return nil
		},
		end: func(context.Context) error {
			n.disk.Slow(0)
			if n.disk.Held() == before {
				return fmt.Errorf("no disk flush of %s was held up: the fault did not take place", n.name())
			}
			return nil
		},
	}
}

// drawClock sets the clock of an instance back or ahead, and right again. Meanwhile the
// instance must grant nothing.
func drawClock(s *site, r *rand.Rand) strike {
	n, what := s.target(r)
	off, hold := 5*time.Minute+seconds(r, 0, 48*3600), seconds(r, 5, 15)
	way, m := "ahead", s.steadyHost(r)
	if r.IntN(2) == 0 {
		way, off = "back", -off
	}
	off = off.Truncate(time.Second)
	// The only instance believes a clock that was set ahead: no other one contradicts.
	believed := off > 0 && !s.clustered()
	return strike{
		what: fmt.Sprintf("clock of %s set %s by %v for %v", what, way, off.Abs(), hold), hold: hold,
		begin: func(ctx context.Context) error {
			if err := n.setClock(off); err != nil {
				return err
			}
			return n.awaitClock(ctx, off, believed)
		},
		end: func(ctx context.Context) error {
			var granted error
			if !believed {
				granted = n.grantsNothing(ctx, m)
			}
			if err := errors.Join(granted, n.setClock(0)); err != nil || !believed {
				return err
			}
			_, err := n.client.Clock().Set(ctx, v1.ClockSet{Time: time.Now(), Reason: "chaos: the clock was ahead, and is right now"})
			return err
		},
	}
}

// awaitClock returns when the instance says that its clock was set by off, and either that it
// does not believe it, or that it does.
func (n *instance) awaitClock(ctx context.Context, off time.Duration, believed bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not after %v", bound))
	defer cancel()
	var last string
	err := program.Await(ctx, n.name()+" notices its clock", func() (bool, error) {
		c, err := n.client.Clock().Get(ctx)
		if err != nil {
			last = err.Error()
			return false, nil
		}
		last = fmt.Sprintf("the machine shows %v, the state is %s", c.Machine, c.State)
		moved := time.Until(c.Machine)-off < time.Minute && time.Until(c.Machine)-off > -time.Minute
		return moved && (c.State == "steady") == believed, nil
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, last)
	}
	return nil
}

// grantsNothing returns an error unless the instance refuses, because of its clock, to assign
// a host to the cluster in which it is.
func (n *instance) grantsNothing(ctx context.Context, m *machine) error {
	_, err := n.client.Hosts().Assign(ctx, m.id, v1.Assignment{Cluster: m.assigned()})
	if p, ok := errors.AsType[*v1.Problem](err); ok && p.Code == "clock_jump" {
		return nil
	}
	return fmt.Errorf("CLOCK: %s, whose clock is not to be believed, is asked to assign %s: %w", n.name(), m.id, errors.Join(err, errors.New("want clock_jump")))
}
