// Package settle offers the store what it is owed since it was away, and has readiness report what waits.
package settle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"portcullis/api/admission"
	"portcullis/api/fabric"
	"portcullis/api/fabric/owed"
	"portcullis/api/store"
	"portcullis/fabricsm/sm"
)

const (
	// every is how often the store is offered what it is owed, and timeout bounds one attempt.
	every   = time.Second
	timeout = 30 * time.Second
)

// Recorder records removals that operators ordered while the store was away.
type Recorder interface {
	Record(ctx context.Context, o admission.Ordered) (int64, error)
}

// Settler offers the store what it is owed.
type Settler struct {
	Owed     *owed.Keeper
	Store    *store.Store
	Recorder Recorder
	Log      *slog.Logger
	Waits    func(detail string) // called with what waits, "" for nothing, after each attempt of Run
}

// Run offers the store what it is owed until ctx ends.
func (s *Settler) Run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	told := ""
	for {
		err := s.Once(ctx)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil:
			told = ""
		case err.Error() != told && !errors.Is(err, store.ErrAway):
			told = err.Error()
			s.Refused(err)
		}
		s.Waits(owes(s.Owed.State()))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Refused logs why the store did not take what it is owed.
func (s *Settler) Refused(err error) {
	s.Log.Error("the store does not take what it is owed; tried again", "error", err)
}

// Once offers the store what it is owed.
func (s *Settler) Once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.Owed.Settle(ctx, s.Store, owed.Carry{
		Removal: func(ctx context.Context, r owed.Removal) (int64, error) {
			return s.Recorder.Record(ctx, admission.Ordered{Host: r.Host, Cluster: r.Cluster, Epoch: r.Epoch, Actor: r.Actor, Time: r.Time, Reason: r.Reason})
		},
		Facts: func(ctx context.Context, facts []sm.Fact) error { return fabric.SaveFacts(ctx, s.Store, facts) },
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
