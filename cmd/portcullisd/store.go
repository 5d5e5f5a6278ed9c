package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/readiness"
)

// storeVerb is the command by which this program serves the store's member in a process
// of its own. Only a service starts it.
const storeVerb = "store-member"

const (
	// extendEvery is how often systemd is asked for more time while the store does not
	// open, and extendBy how much it is asked for.
	extendEvery = 10 * time.Second
	extendBy    = 60 * time.Second
)

// answered calls f, and again while the store is away: a start waits for the store. Other
// errors, and those after ctx has ended, are returned.
func (s *service) answered(ctx context.Context, why string, f func() error) error {
	for {
		err := f()
		if err == nil || ctx.Err() != nil || !errors.Is(err, store.ErrAway) && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		s.log.Error("the start waits for the store", "why", why, "error", err, "retry_in", judgeRetry)
		notify(s.log, "STATUS=waits for the store, "+why)
		select {
		case <-time.After(judgeRetry):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ended returns why a start did not go on: err, or what a part of the service ended with, or
// nil if the end was asked for meanwhile.
func ended(ctx context.Context, group *errgroup.Group, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return group.Wait()
}

// openStore opens the store, however long that takes: without it nothing is known of the fabric, so nothing is written to
// the fabric. A fault that does not pass by itself is an error.
func openStore(ctx context.Context, c *config.Config, p *config.Files, health *readiness.StoreHealth, log *slog.Logger) (*store.Store, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go extend(ctx, log)
	st, err := etcd.Open(ctx, etcd.Options{
		Dir: c.Path(c.StateDir), Remote: p.Etcd, Cluster: p.Cluster, Prefix: c.Etcd.Prefix,
		Log: log, Version: version.Short(), Quota: c.StoreQuota << 20,
		Command: []string{os.Args[0], storeVerb}, OnHealth: health.Tell,
	})
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return st, nil
}

// extend asks systemd, until ctx ends, not to abort a start that takes long.
func extend(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(extendEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			notify(log, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", extendBy.Microseconds()))
		}
	}
}
