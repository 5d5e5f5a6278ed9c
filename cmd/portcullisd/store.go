package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/cmd/internal/version"
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

// storeHealth is how the store is, for /readyz, metrics and the log.
type storeHealth struct {
	log    *slog.Logger
	status func(detail string) // called with why the store does not serve; "" while it does
	news   chan struct{}       // has a token after each change; may be nil

	mu   sync.Mutex
	last etcd.Health
}

// tell takes news of the store.
func (h *storeHealth) tell(now etcd.Health) {
	h.mu.Lock()
	was := h.last
	h.last = now
	h.mu.Unlock()
	switch {
	case errors.Is(now.Away, etcd.ErrOpening) || errors.Is(was.Away, etcd.ErrOpening) && now.Away == nil:
		// A start that takes its time is no news.
	case now.Away != nil && (was.Away == nil || was.Away.Error() != now.Away.Error()):
		h.log.Error("the store is away: nothing is granted until it is back; the fabric is served from memory", "error", now.Away)
	case now.Away == nil && was.Away != nil:
		h.log.Warn("the store serves", "restarts", now.Restarts)
	}
	switch {
	case now.Warning != "" && was.Warning == "":
		h.log.Warn("the store runs short", "detail", now.Warning)
	case now.Warning == "" && was.Warning != "":
		h.log.Warn("the store has room again")
	}
	h.status(h.detail(now))
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// detail says what /readyz shows of the store.
func (*storeHealth) detail(h etcd.Health) string {
	switch {
	case h.Away != nil:
		return h.Away.Error()
	case h.Short != nil:
		return h.Short.Error()
	default:
		return ""
	}
}

func (h *storeHealth) now() etcd.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// collectors are the metrics of the store.
func (h *storeHealth) collectors() []prometheus.Collector {
	gauge := func(name, help string, value func(etcd.Health) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(h.now()) })
	}
	yes := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	return []prometheus.Collector{
		gauge("portcullis_store_up", "1 while the store serves.", func(h etcd.Health) float64 { return yes(h.Away == nil) }),
		gauge("portcullis_store_takes_all", "1 while the store takes every change, 0 while it takes removals alone or is away.",
			func(h etcd.Health) float64 { return yes(h.Away == nil && h.Short == nil) }),
		gauge("portcullis_store_size_bytes", "Size of the store's database.", func(h etcd.Health) float64 { return float64(h.Size) }),
		gauge("portcullis_store_in_use_bytes", "What records take of the store's database.", func(h etcd.Health) float64 { return float64(h.InUse) }),
		gauge("portcullis_store_quota_bytes", "Most that the store's database may have.", func(h etcd.Health) float64 { return float64(h.Quota) }),
		gauge("portcullis_store_disk_free_bytes", "Space on the disk of the state directory.", func(h etcd.Health) float64 { return float64(max(h.Free, 0)) }),
		gauge("portcullis_store_reserve", "1 while the state directory's disk holds the reserve for removals.", func(h etcd.Health) float64 { return yes(h.Reserve) }),
		gauge("portcullis_store_restarts", "How often the store's member was started again since the service was.", func(h etcd.Health) float64 { return float64(h.Restarts) }),
	}
}

// storePlace says where the records are.
func (c *config) storePlace() string {
	if len(c.Etcd.Endpoints) > 0 {
		return "at " + strings.Join(c.Etcd.Endpoints, ", ")
	}
	return "in " + c.path(c.StateDir)
}

// openStore opens the store, however long that takes: without it nothing is known of the fabric, so nothing is written to
// the fabric. A fault that does not pass by itself is an error.
func openStore(ctx context.Context, c *config, p *parts, health *storeHealth, log *slog.Logger) (*store.Store, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go extend(ctx, log)
	st, err := etcd.Open(ctx, etcd.Options{
		Dir: c.path(c.StateDir), Remote: p.etcd, Cluster: p.cluster, Prefix: c.Etcd.Prefix,
		Log: log, Version: version.Short(), Quota: c.StoreQuota << 20,
		Command: []string{os.Args[0], storeVerb}, OnHealth: health.tell,
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
