package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/hostrecord"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Hosts counts hosts by phase, as they are recorded, and those that lost their admission. It measures how long hosts take from
// accepted evidence to admission, and from release to proven absence, by the times in their records.
type Hosts struct {
	count, lost    *prometheus.Desc
	admit, isolate prometheus.Histogram

	mu     sync.Mutex
	last   map[string]hostSeen // nil: the records were not read yet
	losses uint64
}

// hostSeen is what the last record of a host said.
type hostSeen struct {
	phase    v1.Phase
	since    time.Time // of the phase
	evidence time.Time // when evidence was accepted last; zero: none was in this assignment
	admitted bool      // in this assignment, now or before
}

// hostBuckets are bounds in seconds.
var hostBuckets = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800}

// NewHosts returns metrics of no host. They have no series before the records were read.
func NewHosts() *Hosts {
	return &Hosts{
		count: prometheus.NewDesc("portcullis_hosts", "Hosts that were ever assigned, by their phase.", []string{"phase"}, nil),
		lost:  prometheus.NewDesc("portcullis_admissions_lost_total", "Times since the start that a host ceased to be admitted although its assignment goes on.", nil, nil),
		admit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "portcullis_host_admit_seconds", Buckets: hostBuckets,
			Help: "Time from the accepted evidence of a host until it was admitted, once for each assignment.",
		}),
		isolate: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "portcullis_host_isolate_seconds", Buckets: hostBuckets,
			Help: "Time from the release of a host until its P_Keys were read to be absent.",
		}),
	}
}

// Describe implements prometheus.Collector.
func (h *Hosts) Describe(ch chan<- *prometheus.Desc) {
	ch <- h.count
	ch <- h.lost
	h.admit.Describe(ch)
	h.isolate.Describe(ch)
}

// Collect implements prometheus.Collector.
func (h *Hosts) Collect(ch chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		return
	}
	counts := map[v1.Phase]int{
		v1.PhaseQuarantined: 0, v1.PhaseAwaiting: 0, v1.PhaseVerified: 0, v1.PhaseGranting: 0, v1.PhaseAdmitted: 0, v1.PhaseReleasing: 0,
	}
	for _, seen := range h.last {
		counts[seen.phase]++
	}
	for p, n := range counts {
		ch <- prometheus.MustNewConstMetric(h.count, prometheus.GaugeValue, float64(n), string(p))
	}
	ch <- prometheus.MustNewConstMetric(h.lost, prometheus.CounterValue, float64(h.losses))
	h.admit.Collect(ch)
	h.isolate.Collect(ch)
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
	return hostrecord.Records().Follow(ctx, st, h.takeAll, func(ev *store.Event[hostrecord.Record]) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if ev.Deleted {
			delete(h.last, ev.Key)
		} else {
			h.take(ev.Key, &ev.Value)
		}
	})
}

// takeAll takes all records there are. Losses that a broken watch did not show are counted too.
func (h *Hosts) takeAll(list []store.Record[hostrecord.Record]) {
	h.mu.Lock()
	defer h.mu.Unlock()
	gone := h.last
	h.last = make(map[string]hostSeen, len(list))
	for i := range list {
		if was, known := gone[list[i].Key]; known {
			h.last[list[i].Key] = was
		}
		h.take(list[i].Key, &list[i].Value)
	}
}

// take takes a record with mu held.
func (h *Hosts) take(host string, r *hostrecord.Record) {
	now := hostSeen{phase: hostrecord.PhaseOf(*r), since: r.Since, admitted: r.Admitted}
	if r.Evidence != nil {
		now.evidence = r.Evidence.Time
	}
	was, known := h.last[host]
	h.last[host] = now
	if was.phase == v1.PhaseAdmitted && now.phase != v1.PhaseAdmitted && r.Cluster != "" {
		h.losses++
	}
	if !known { // what happened before the start is not measured
		return
	}
	if now.admitted && !was.admitted && !now.evidence.IsZero() {
		observe(h.admit, now.since.Sub(now.evidence))
	}
	if was.phase == v1.PhaseReleasing && now.phase != v1.PhaseReleasing {
		observe(h.isolate, now.since.Sub(was.since))
	}
}

// observe adds a time. One below zero was not measured by one clock, and is left out.
func observe(h prometheus.Histogram, d time.Duration) {
	if d >= 0 {
		h.Observe(d.Seconds())
	}
}
