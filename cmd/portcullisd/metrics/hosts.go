package metrics

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/hostrecord"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Hosts counts hosts by phase, as they are recorded, and those that lost their admission.
type Hosts struct {
	count, lost *prometheus.Desc

	mu     sync.Mutex
	phases map[string]v1.Phase
	losses uint64
}

// NewHosts returns metrics of no host. They have no series before the records were read.
func NewHosts() *Hosts {
	return &Hosts{
		count: prometheus.NewDesc("portcullis_hosts", "Hosts that were ever assigned, by their phase.", []string{"phase"}, nil),
		lost:  prometheus.NewDesc("portcullis_admissions_lost_total", "Times since the start that a host ceased to be admitted although its assignment goes on.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (h *Hosts) Describe(ch chan<- *prometheus.Desc) {
	ch <- h.count
	ch <- h.lost
}

// Collect implements prometheus.Collector.
func (h *Hosts) Collect(ch chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.phases == nil {
		return
	}
	counts := map[v1.Phase]int{
		v1.PhaseQuarantined: 0, v1.PhaseAwaiting: 0, v1.PhaseVerified: 0, v1.PhaseGranting: 0, v1.PhaseAdmitted: 0, v1.PhaseReleasing: 0,
	}
	for _, p := range h.phases {
		counts[p]++
	}
	for p, n := range counts {
		ch <- prometheus.MustNewConstMetric(h.count, prometheus.GaugeValue, float64(n), string(p))
	}
	ch <- prometheus.MustNewConstMetric(h.lost, prometheus.CounterValue, float64(h.losses))
}

// hostsRetry is the pause before the records are read again.
const hostsRetry = time.Second

// Follow takes the phases of hosts from the store, now and after each change, until ctx ends.
func (h *Hosts) Follow(ctx context.Context, st *store.Store, log *slog.Logger) {
	for ctx.Err() == nil {
		err := h.watch(ctx, st)
		if ctx.Err() != nil {
			return
		}
		log.Error("the phases of hosts are not counted", "error", err, "retry_in", hostsRetry)
		select {
		case <-time.After(hostsRetry):
		case <-ctx.Done():
		}
	}
}

func (h *Hosts) watch(ctx context.Context, st *store.Store) error {
	snap, err := st.Snapshot(ctx)
	if err != nil {
		return err
	}
	list, _, err := hostrecord.Records().List(ctx, snap, "")
	if err != nil {
		return err
	}
	h.takeAll(list)
	for ev := range hostrecord.Records().Watch(ctx, st, snap.Revision) {
		if ev.Err != nil {
			return ev.Err
		}
		h.mu.Lock()
		if ev.Deleted {
			delete(h.phases, ev.Key)
		} else {
			h.take(ev.Key, &ev.Value)
		}
		h.mu.Unlock()
	}
	return errors.New("watch ended")
}

// takeAll takes all records there are. Losses that a broken watch did not show are counted too.
func (h *Hosts) takeAll(list []store.Record[hostrecord.Record]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	gone := h.phases
	h.phases = make(map[string]v1.Phase, len(list))
	for i := range list {
		if was, known := gone[list[i].Key]; known {
			h.phases[list[i].Key] = was
		}
		h.take(list[i].Key, &list[i].Value)
	}
}

// take takes a record with mu held.
func (h *Hosts) take(host string, r *hostrecord.Record) {
	phase := hostrecord.PhaseOf(*r)
	if h.phases[host] == v1.PhaseAdmitted && phase != v1.PhaseAdmitted && r.Cluster != "" {
		h.losses++
	}
	h.phases[host] = phase
}
