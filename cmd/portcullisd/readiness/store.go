package readiness

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/store/etcd"
	v1 "portcullis/api/v1"
)

// StoreHealth is how the store is, for /readyz, metrics and the log.
type StoreHealth struct {
	Log    *slog.Logger
	Status func(detail string) // called with why the store does not serve; "" while it does
	News   chan struct{}       // has a token after each change; may be nil

	mu   sync.Mutex
	last etcd.Health
}

// Note takes news of the store.
func (h *StoreHealth) Note(now etcd.Health) {
	h.mu.Lock()
	was := h.last
	h.last = now
	h.mu.Unlock()
	switch {
	case errors.Is(now.Away, etcd.ErrOpening) || errors.Is(was.Away, etcd.ErrOpening) && now.Away == nil:
		// A start that takes its time is no news.
	case now.Away != nil && (was.Away == nil || was.Away.Error() != now.Away.Error()):
		h.Log.Error("the store is away: nothing is granted until it is back; the fabric is served from memory", "error", now.Away)
	case now.Away == nil && was.Away != nil:
		h.Log.Warn("the store serves", "restarts", now.Restarts)
	}
	switch {
	case now.Warning != "" && was.Warning == "":
		h.Log.Warn("the store runs short", "detail", now.Warning)
	case now.Warning == "" && was.Warning != "":
		h.Log.Warn("the store has room again")
	}
	h.Status(h.detail(now))
	select {
	case h.News <- struct{}{}:
	default:
	}
}

// detail says what /readyz shows of the store.
func (*StoreHealth) detail(h etcd.Health) string {
	switch {
	case h.Away != nil:
		return h.Away.Error()
	case h.Short != nil:
		return h.Short.Error()
	default:
		return ""
	}
}

// Now returns the last health of the store.
func (h *StoreHealth) Now() etcd.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// Warned adds to the condition of a store that serves what runs short, and returns all.
func (h *StoreHealth) Warned(all []v1.Condition) []v1.Condition {
	for i := range all {
		if c := &all[i]; c.Name == Store && c.OK {
			c.Detail = h.Now().Warning
		}
	}
	return all
}

// Collectors are the metrics of the store.
func (h *StoreHealth) Collectors() []prometheus.Collector {
	gauge := func(name, help string, value func(etcd.Health) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(h.Now()) })
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
