package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// target draws an instance: the leader, as often as any one.
func (s *site) target(r *rand.Rand) (n *instance, what string) {
	n = pick(r, s.nodes)
	leader := s.leader.Load()
	if r.IntN(2) == 0 && leader != nil {
		n = leader
	}
	if n == leader {
		return n, n.name() + " (leader)"
	}
	return n, n.name()
}

func drawKill(s *site, r *rand.Rand) strike {
	n, what := s.target(r)
	down := seconds(r, 0, 5)
	return strike{
		what: fmt.Sprintf("kill -9 of %s, down for %v", what, down), hold: down,
		begin: func(context.Context) error { n.kill(); return nil },
		end:   func(context.Context) error { return n.start() },
	}
}

func drawStop(s *site, r *rand.Rand) strike {
	n, what := s.target(r)
	return strike{
		what:  "orderly restart of " + what,
		begin: func(context.Context) error { n.stop(); return nil },
		end:   func(context.Context) error { return n.start() },
	}
}

// drawPause stops an instance for longer than its lease: all of it, as a machine that is
// suspended, or one of its two processes.
func drawPause(s *site, r *rand.Rand) strike {
	n, what := s.target(r)
	which, hold := pick(r, []part{whole, front, storage}), seconds(r, 4, 8)
	return strike{
		what: fmt.Sprintf("SIGSTOP of %s %s for %v", which, what, hold), hold: hold,
		begin: func(context.Context) error { return n.pause(which) },
		end:   func(context.Context) error { return n.resume(which) },
	}
}

func drawStepDown(s *site, _ *rand.Rand) strike {
	what := "the leader"
	if n := s.leader.Load(); n != nil {
		what = n.name()
	}
	return strike{what: "step-down of " + what, begin: s.stepDown, end: nothing}
}

func drawMemberLost(s *site, r *rand.Rand) strike {
	n, what := s.target(r)
	hold := seconds(r, 0, 5)
	return strike{
		what: fmt.Sprintf("%s lost with its disk, and replaced after %v", what, hold), hold: hold,
		begin: func(context.Context) error { return s.lose(n) },
		end:   func(ctx context.Context) error { return s.replace(ctx, n) },
	}
}

func drawDiskFull(s *site, r *rand.Rand) strike {
	n, what := s.target(r)
	hold := seconds(r, 3, 10)
	return strike{
		what: fmt.Sprintf("full disk of %s for %v", what, hold), hold: hold,
		begin: func(context.Context) error { return n.fill() },
		end:   func(context.Context) error { return n.free() },
	}
}

// drawSlowStore has the store stand still for most of the time, as on a slow disk.
func drawSlowStore(s *site, r *rand.Rand) strike {
	n, what := s.target(r)
	still, hold := time.Duration(50+r.IntN(450))*time.Millisecond, seconds(r, 3, 8)
	const run = 20 * time.Millisecond
	var halt context.CancelFunc
	ended := make(chan error, 1)
	return strike{
		what: fmt.Sprintf("store of %s standing still for %v again and again, for %v", what, still, hold), hold: hold,
		begin: func(ctx context.Context) error {
			ctx, halt = context.WithCancel(ctx)
			go func() { ended <- n.stall(ctx, still, run) }()
			return nil
		},
		end: func(context.Context) error { halt(); return <-ended },
	}
}

func drawNetwork(s *site, r *rand.Rand) strike {
	n, what := s.target(r)
	hold, way := seconds(r, 4, 10), pick(r, []string{"out of", "into", "out of and into"})
	clients, whom := r.IntN(2) == 0 || !s.clustered(), "the other instances"
	if clients {
		whom = "all"
	}
	return strike{
		what: fmt.Sprintf("network %s %s cut from %s for %v", way, what, whom, hold), hold: hold,
		begin: func(ctx context.Context) error {
			var errs []error
			if strings.Contains(way, "out of") {
				errs = append(errs, s.network.cutOut(ctx, n.number, clients))
			}
			if strings.Contains(way, "into") {
				errs = append(errs, s.network.cutIn(ctx, n.number, clients))
			}
			return errors.Join(errs...)
		},
		end: func(ctx context.Context) error { return s.network.mend(ctx, n.number) },
	}
}
