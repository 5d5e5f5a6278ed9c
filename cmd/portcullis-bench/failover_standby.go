package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"portcullis/cmd/internal/program"
)

// startServices has one service bring a site up; it grows into several afterwards.
func startServices(ctx context.Context, o *options, g *ground) (standby, error) {
	x, err := g.install(ctx, o.program)
	if err != nil {
		return nil, err
	}
	// The records of the first host show what the service writes for a host. The others are then as after years.
	like, err := x.populate(ctx, g.members[:1], &alike{})
	if err == nil {
		_, err = x.populate(ctx, g.members, like)
	}
	if err == nil {
		err = x.first.start()
	}
	if err == nil {
		_, err = x.leads(ctx, nil)
	}
	if err != nil {
		x.stop()
		return nil, err
	}
	return x, nil
}

func (x *services) ends() []string { return []string{killed, paused, planned, stopped} }

func (x *services) patience(string) time.Duration { return failoverLimit }

func (x *services) end(ctx context.Context, how string) error {
	if x.old = x.now(ctx); x.old == nil {
		return errors.New("no instance leads a settled fabric")
	}
	x.ended = how == killed || how == stopped
	switch how {
	case killed:
		return x.old.process.Signal(syscall.SIGKILL)
	case paused:
		return x.old.process.Signal(syscall.SIGSTOP)
	case planned:
		return x.stepDown(ctx, x.old)
	case stopped:
		return x.old.process.Signal(syscall.SIGTERM)
	default:
		return fmt.Errorf("no way to end a leader: %s", how)
	}
}

func (x *services) settled(ctx context.Context) error {
	_, err := x.leads(ctx, x.old)
	return err
}

func (x *services) successors() (pids []int) {
	for _, s := range x.all {
		if s != x.old {
			pids = append(pids, s.process.PID())
		}
	}
	return pids
}

func (x *services) leader() string { return x.old.name }

func (x *services) wake() { _ = x.old.process.Signal(syscall.SIGCONT) }

func (x *services) back(ctx context.Context) error {
	if x.ended {
		x.old.stop() // it may still be about to end
		if err := x.old.start(); err != nil {
			return err
		}
	}
	return program.AwaitEvery(ctx, glance, "all instances answer", func() (bool, error) {
		leader := x.now(ctx)
		if leader == nil {
			return false, nil
		}
		for _, s := range x.all {
			if now, err := s.api.SM().Get(ctx); err != nil || now.Leader != leader.name || !s.ready(ctx, "store") {
				return false, nil // not yet
			}
		}
		return true, nil
	})
}

// startPair returns what starts a pair of OpenSMs with more options.
func startPair(text string) func(context.Context, *options, *ground) (standby, error) {
	return func(ctx context.Context, _ *options, g *ground) (standby, error) {
		p, err := newOpenSMPair(ctx, g, text)
		if err != nil {
			p.stop()
			return nil, err
		}
		return p, nil
	}
}

func (p *openSMPair) ends() []string { return []string{killed, planned, paused} }

// hangLimit and hangLimitPolled are how long a standby is waited for: half as long again as
// it takes over in, or more. On a simulator no request times out that a process took and
// does not answer, as it stands still or has ended; a standby that has one out waits for
// ever.
const (
	hangLimit       = 90 * time.Second
	hangLimitPolled = 30 * time.Second
)

func (p *openSMPair) patience(string) time.Duration {
	// A sweep of ten thousand hosts takes its time, too.
	sweep := time.Duration(p.ground.hosts) * 10 * time.Millisecond
	if p.options != "" {
		return hangLimitPolled + sweep
	}
	return hangLimit + sweep
}

func (p *openSMPair) end(_ context.Context, how string) error {
	p.before = p.both[1].ups()
	s, known := map[string]syscall.Signal{killed: syscall.SIGKILL, planned: syscall.SIGTERM, paused: syscall.SIGSTOP}[how]
	if !known {
		return fmt.Errorf("no way to end a master: %s", how)
	}
	return p.both[0].cmd.Process.Signal(s)
}

func (p *openSMPair) settled(ctx context.Context) error {
	err := program.AwaitEvery(ctx, glance, "the new master has swept", func() (bool, error) { return p.both[1].ups() > p.before, nil })
	if err != nil {
		return err
	}
	return p.rest(ctx)
}

func (p *openSMPair) successors() []int { return []int{p.both[1].cmd.Process.Pid} }

func (p *openSMPair) leader() string { return p.both[0].node }

func (p *openSMPair) wake() { _ = p.both[0].cmd.Process.Signal(syscall.SIGCONT) }

func (p *openSMPair) back(ctx context.Context) error { return p.begin(ctx) }
