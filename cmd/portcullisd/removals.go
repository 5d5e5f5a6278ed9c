package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/admission"
	"portcullis/api/audit"
	"portcullis/api/fabric"
	"portcullis/api/fabric/owed"
	"portcullis/api/refusal"
	"portcullis/api/removals"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

const (
	// settleEvery is how often the store is offered what it is owed, and settleTime bounds
	// one attempt.
	settleEvery = time.Second
	settleTime  = 30 * time.Second
)

func (s *service) newRemovals() *removals.Remover {
	policy := s.parts.policy
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
		s.status.set("journal", owes(s.owed.State()))
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

// owedMetrics are the metrics of what the store is owed.
func owedMetrics(k *owed.Keeper) []prometheus.Collector {
	var all []prometheus.Collector
	for kind, count := range map[string]func(owed.State) int{
		"fact": func(s owed.State) int { return s.Facts }, "removal": func(s owed.State) int { return s.Removals }, "note": func(s owed.State) int { return s.Notes },
	} {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "portcullis_store_owed", Help: "What waits for the store since it was away.", ConstLabels: prometheus.Labels{"kind": kind},
		}, func() float64 { return float64(count(k.State())) }))
	}
	return all
}

// auditMarks puts marks into the audit log of a store. A mark that a place is unhealthy takes effect without the store,
// which is updated later; a mark that restores access does not.
func auditMarks(st *store.Store, k *owed.Keeper) func(context.Context, string, ib.Place, *v1.HealthMark) error {
	return func(ctx context.Context, actor string, pl ib.Place, m *v1.HealthMark) error {
		ctx, cancel := context.WithTimeout(ctx, removals.Patience)
		defer cancel()
		e := audit.Entry{
			Time: time.Now(), Actor: actor, Action: "fabric.health", Object: "fabric/" + pl.String(), Code: m.Mark, Detail: m.Reason,
		}
		closes := m.Mark == v1.MarkUnhealthy && actor != ""
		if closes && k.State().Notes > 0 {
			k.AddNote(e) // after those that wait already; a host with many ports waits for the store once
			return nil
		}
		_, err := st.Update(ctx, func(tx *store.Tx) error { return audit.Append(ctx, tx, e) })
		switch {
		case err == nil:
			return nil
		case closes:
			k.AddNote(e) // the log says what becomes of it
			return nil
		default:
			return &refusal.Error{
				Code: v1.CodeUnavailable, Status: refusal.Unavailable, Err: err,
				Detail: "the audit log cannot be written, so nothing was changed", Hint: "look at /readyz, then ask again",
			}
		}
	}
}
