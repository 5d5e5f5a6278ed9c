// Package tracing follows the records of hosts in the store and exports traces of admissions and releases. It has no part in them: it
// reads, and no part of the service waits for a trace.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/store"
	"portcullis/api/trace"
)

// Exporter sends traces, without delay. Package api/trace/otlp implements it.
type Exporter interface {
	// Export returns the id of the trace.
	Export(ctx context.Context, t *trace.Trace) string
}

// Follower exports traces of what ends while it runs, and of what began before.
type Follower struct {
	Store *store.Store
	To    Exporter
	Log   *slog.Logger
	Now   func() time.Time
}

const (
	// retryPause is the pause before the records are read again.
	retryPause = time.Second
	// duePause is how often it looks for windows that have closed.
	duePause = 5 * time.Second
	// readLimit bounds the reading of what belongs to one trace.
	readLimit = 5 * time.Second
)

// Run follows until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	keeper := trace.NewKeeper() // lasts while the store is away
	for ctx.Err() == nil {
		err := f.follow(ctx, keeper)
		if ctx.Err() != nil {
			return
		}
		f.Log.Error("admissions are not traced", "error", err, "retry_in", retryPause)
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
		}
	}
}

func (f *Follower) follow(ctx context.Context, k *trace.Keeper) error {
	all := hostrecord.Records()
	list, revision, err := all.List(ctx, f.Store, "")
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(list))
	for i := range list {
		known[list[i].Key] = true
		f.export(ctx, k.Take(list[i].Key, &list[i].Value, f.Now()))
	}
	f.export(ctx, k.Keep(known, f.Now()))
	changes := all.Watch(ctx, f.Store, revision)
	look := time.NewTicker(duePause)
	defer look.Stop()
	for {
		select {
		case ev, more := <-changes:
			switch {
			case !more && ctx.Err() != nil:
				return context.Cause(ctx)
			case !more:
				return errors.New("the watch ended")
			case ev.Err != nil:
				return ev.Err
			case ev.Deleted:
				f.export(ctx, k.Take(ev.Key, nil, f.Now()))
			default:
				f.export(ctx, k.Take(ev.Key, &ev.Value, f.Now()))
			}
		case <-look.C:
			f.export(ctx, k.Due(f.Now()))
		}
	}
}

// export exports what ended.
func (f *Follower) export(ctx context.Context, ended []trace.Ended) {
	for i := range ended {
		e := &ended[i]
		of, err := f.memberships(ctx, e)
		if err != nil {
			f.Log.Warn("a trace lacks the ports", "host", e.Host, "error", err)
		}
		t := e.Trace(of)
		id := f.To.Export(ctx, &t)
		f.Log.Info("traced", "what", t.Root.Name, "host", e.Host, "outcome", string(e.Outcome), "took", e.Took(), "trace_id", id)
	}
}

// memberships reads what is on record of the memberships that a trace has spans of.
func (f *Follower) memberships(ctx context.Context, e *trace.Ended) (map[records.Key]records.Standing, error) {
	ctx, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	keys, err := e.Keys()
	if err != nil {
		return nil, err
	}
	of := map[records.Key]records.Standing{}
	for _, k := range keys {
		st, err := records.StandingOf(ctx, f.Store, k)
		switch {
		case errors.Is(err, store.ErrNotFound): // taken away since
		case err != nil:
			return of, fmt.Errorf("read membership %v: %w", k, err)
		case st.Grant.Host == e.Host:
			of[k] = st
		}
	}
	return of, nil
}
