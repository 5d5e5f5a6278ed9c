package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/cmd/internal/program"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
)

const (
	// bound is the time in which everything must be as before after a fault has ended.
	bound = 90 * time.Second
	// look is how often all tables are judged.
	look = 100 * time.Millisecond
)

// errEnough ends what runs beside the faults.
var errEnough = errors.New("all faults are injected")

// inject injects the faults, with traffic and admissions all the time.
func inject(ctx context.Context, o options, s *site) error {
	var steady, moving []*machine
	for i, m := range s.hosts {
		if churns(i) {
			moving = append(moving, m)
		} else {
			steady = append(steady, m)
		}
	}
	streams, err := s.startStreams(steady)
	if err != nil {
		return err
	}
	s.say("%d streams of data packets, %d hosts that change their cluster all the time", len(streams), len(moving))
	beside, during := errgroup.WithContext(ctx)
	load, stopLoad := context.WithCancel(during)
	defer stopLoad()
	beside.Go(func() error { return s.churn(load, moving, rand.New(rand.NewPCG(o.seed, 1<<32))) })
	beside.Go(func() error { return s.watch(during, streams) })
	beside.Go(func() error { return s.countWrites(during) })
	for _, n := range s.nodes {
		beside.Go(func() error { return s.acks.write(load, n, s.changes) })
		beside.Go(func() error { return s.watchTerms(during, n) })
	}
	beside.Go(func() error {
		if err := s.injectAll(during, o, steady, streams); err != nil {
			return err
		}
		stopLoad()
		return errEnough
	})
	if err := beside.Wait(); !errors.Is(err, errEnough) {
		return err
	}
	if err := s.forgotten(ctx); err != nil {
		return fmt.Errorf("in the end: %w", err)
	}
	return s.conclude(streams)
}

// watch judges all tables again and again.
func (s *site) watch(ctx context.Context, streams []*stream) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		if err := s.watchTables(); err != nil {
			return err
		}
		for _, w := range streams {
			if n := w.flow.Counts(); w.foreign && n.Delivered > 0 {
				return fmt.Errorf("ISOLATION: %s delivered %d packets", w.name, n.Delivered)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *site) injectAll(ctx context.Context, o options, steady []*machine, streams []*stream) error {
	kinds, err := chosen(o.only, o.instances)
	if err != nil {
		return err
	}
	for i := o.from - 1; i < o.faults; i++ {
		r := rand.New(rand.NewPCG(o.seed, uint64(i)))
		f := pick(r, kinds)
		k := f.draw(s, r)
		began := time.Now()
		if err := s.injectOne(ctx, k, steady, streams); err != nil {
			return fmt.Errorf("fault %d, %s (%s): %w", i+1, f.name, k.what, err)
		}
		took := time.Since(began) - k.hold
		if (i+1)%proveEvery == 0 || i+1 == o.faults {
			if err := s.prove(ctx, steady, r); err != nil {
				return fmt.Errorf("after fault %d, %s (%s): %w", i+1, f.name, k.what, err)
			}
		}
		s.say("%3d/%d %-13s %s: nothing lost, as before %.1f s after it ended", i+1, o.faults, f.name, k.what, took.Seconds())
	}
	return nil
}

// injectOne injects one fault and judges it.
func (s *site) injectOne(ctx context.Context, k strike, steady []*machine, streams []*stream) error {
	if err := errors.Join(rest(ctx, turn), s.mark(streams, k.cut)); err != nil {
		return err
	}
	lids := s.lidsWritten()
	if err := k.begin(ctx); err != nil {
		return errors.Join(err, k.end(ctx))
	}
	if err := s.awaitRerouted(ctx, rerouted(streams)); err != nil {
		return errors.Join(err, k.end(ctx))
	}
	if err := rest(ctx, k.hold); err != nil {
		return err
	}
	if err := k.end(ctx); err != nil {
		return err
	}
	if err := s.awaitRestored(ctx, steady, streams); err != nil {
		return err
	}
	if n := s.lidsWritten() - lids; n > 0 && len(k.cut) == 0 {
		return fmt.Errorf("MOVED: %d LIDs were changed, although nothing in the fabric was cut", n)
	}
	return errors.Join(lost(streams), s.forgotten(ctx))
}

// awaitRerouted returns when the streams deliver although what is cut is still cut.
func (s *site) awaitRerouted(ctx context.Context, streams []*stream) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not after %v", bound))
	defer cancel()
	last, missing := counts(streams), ""
	err := program.Await(ctx, "streams that have another path deliver", func() (done bool, _ error) {
		done, missing = restored(streams, last)
		return done, nil
	})
	if err != nil {
		return fmt.Errorf("AVAILABILITY: %w: %s", err, missing)
	}
	return nil
}

// awaitRestored returns when a manager has brought up a link, every host that stays is
// admitted, and every stream delivers.
func (s *site) awaitRestored(ctx context.Context, steady []*machine, streams []*stream) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bound, fmt.Errorf("not after %v", bound))
	defer cancel()
	if err := s.fabric.Bounce(probe, 1); err != nil {
		return err
	}
	last, missing := counts(streams), ""
	err := program.Await(ctx, "all is as before", func() (done bool, err error) {
		for _, n := range s.nodes {
			if err := n.died(); err != nil {
				return false, fmt.Errorf("ENDED: %w", err)
			}
		}
		done, why := s.managed()
		if done {
			done, why = s.settled(ctx)
		}
		if done {
			done, why = s.steadyAdmitted(ctx, steady)
		}
		if done {
			done, why = restored(streams, last)
		}
		if ctx.Err() == nil || missing == "" { // else requests ended with ctx, which is no cause
			missing = why
		}
		return done, nil
	})
	if err != nil && missing != "" {
		return fmt.Errorf("%w: %s", err, missing)
	}
	return err
}

// managed reports whether a manager has brought up the link that was taken down.
func (s *site) managed() (bool, string) {
	if state := s.fabric.PortInfo(probe, 1).PortState; state != ib.PortActive {
		return false, fmt.Sprintf("no manager has made the link of %s active, which is %v", probe, state)
	}
	return true, ""
}

// settled reports whether every instance answers, and all agree on one that manages the
// fabric with nothing out of its sight. Admissions go on, so that one that works on a change
// counts as settled.
func (s *site) settled(ctx context.Context) (bool, string) {
	var leads string
	for i, n := range s.nodes {
		sm, err := n.client.SM().Get(ctx)
		switch {
		case err != nil:
			return false, fmt.Sprintf("%s: %v", n.name(), err)
		case sm.State != "Master" || len(sm.Problems) > 0:
			return false, fmt.Sprintf("%s says of the Subnet Manager at %q: %s, problems %q", n.name(), sm.Leader, sm.State, sm.Problems)
		case i > 0 && sm.Leader != leads || sm.Leader == "" && s.clustered():
			return false, fmt.Sprintf("%s says that %q leads, others %q", n.name(), sm.Leader, leads)
		}
		leads = sm.Leader
	}
	s.leader.Store(s.called(leads))
	return true, ""
}

func (s *site) steadyAdmitted(ctx context.Context, steady []*machine) (bool, string) {
	all, err := s.list(ctx)
	if err != nil {
		return false, err.Error()
	}
	stay := make(map[string]bool, len(steady))
	for _, m := range steady {
		stay[m.id] = true
	}
	for i := range all {
		if ok, why := admitted(&all[i]); stay[all[i].ID] && !ok {
			return false, why
		}
	}
	return true, ""
}

// conclude prints what was judged.
func (s *site) conclude(streams []*stream) error {
	var all sim.FlowCounts
	for _, w := range streams {
		if n := w.flow.Counts(); !w.foreign {
			all.Sent, all.Delivered = all.Sent+n.Sent, all.Delivered+n.Delivered
		}
	}
	s.say("held: of %d data packets %d were delivered, the others had no path; no port without admission held the P_Key of a tenant", all.Sent, all.Delivered)
	there, gone := s.acks.copies()
	s.say("held: %d tenants whose creation was acknowledged are there, and %d whose deletion was are not", len(there), len(gone))
	if !s.clustered() {
		return nil
	}
	spans, terms, err := s.terms.judged(s.nodes)
	if err != nil {
		return err
	}
	wrote := s.written()
	s.say("held: one instance wrote at a time, in %d terms, %d times judged; Sets: %v", terms, spans, wrote)
	return nil
}
