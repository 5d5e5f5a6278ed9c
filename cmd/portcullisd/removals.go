package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"portcullis/api/admission"
	"portcullis/api/fabric"
	"portcullis/api/fabric/owed"
	"portcullis/api/removals"
	"portcullis/api/store"
	"portcullis/attest"
	"portcullis/fabricsm/sm"
)

const (
	// settleEvery is how often the store is offered what it is owed, and settleTime bounds
	// one attempt.
	settleEvery = time.Second
	settleTime  = 30 * time.Second
)

func (s *service) newRemovals() *removals.Remover {
	policy := s.parts.Policy
	if policy == nil {
		policy = attest.DefaultPolicy() // without the api role; removals judge no evidence
	}
	s.recorder = admission.New(admission.Options{Store: s.store, Policy: policy, Log: s.log})
	return removals.New(removals.Options{
		Admission: s.recorder, Owed: s.owed, Link: s.link.Load, Mark: s.marks.MarkHealth, Acts: s.mayWrite, Log: s.log,
	})
}

// settleOwed offers the store what it is owed until ctx ends.
func (s *service) settleOwed(ctx context.Context) error {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	told := ""
	for {
		err := s.settle(ctx)
		if ctx.Err() != nil {
			return nil
		}
		switch {
		case err == nil:
			told = ""
		case err.Error() != told && !errors.Is(err, store.ErrAway):
			told = err.Error()
			s.log.Error("the store does not take what it is owed; tried again", "error", err)
		}
		s.status.Set("journal", owes(s.owed.State()))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *service) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	return s.owed.Settle(ctx, s.store, owed.Carry{
		Removal: func(ctx context.Context, r owed.Removal) (int64, error) {
			return s.recorder.Record(ctx, admission.Ordered{Host: r.Host, Cluster: r.Cluster, Epoch: r.Epoch, Actor: r.Actor, Time: r.Time, Reason: r.Reason})
		},
		Facts: func(ctx context.Context, facts []sm.Fact) error { return fabric.SaveFacts(ctx, s.store, facts) },
	})
}

// owes says in words what the store is owed; "" if nothing.
func owes(st owed.State) string {
	if st.Since.IsZero() {
		return ""
	}
	where := "in the journal"
	if st.Fragile {
		where = "in memory alone"
	}
	return fmt.Sprintf("%d facts, %d removals and %d entries of the audit log wait %s for the store since %s",
		st.Facts, st.Removals, st.Notes, where, st.Since.UTC().Format(time.RFC3339))
}
