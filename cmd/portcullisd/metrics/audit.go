// Package metrics has the collectors of what the parts of the service count.
package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/audit/anchor"
	"portcullis/api/audit/verifier"
	"portcullis/api/review"
	"portcullis/api/store"
)

// anchorMetrics are the metrics of anchors.
type anchorMetrics struct {
	of                      *anchor.Keeper
	behind, attempts, entry *prometheus.Desc
}

// NewAnchors creates the metrics of the anchors of the audit log.
func NewAnchors(of *anchor.Keeper) prometheus.Collector {
	label := []string{"anchor"}
	return &anchorMetrics{
		of:       of,
		behind:   prometheus.NewDesc("portcullis_audit_anchor_behind_seconds", "For how long an anchor has lacked the head of the audit log; 0: it has it.", label, nil),
		attempts: prometheus.NewDesc("portcullis_audit_anchor_writes_total", "Attempts to write an anchor since the start, by what became of them.", []string{"anchor", "result"}, nil),
		entry:    prometheus.NewDesc("portcullis_audit_anchor_entry", "Number of the audit entry that was anchored last since the start.", label, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *anchorMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.behind
	ch <- m.attempts
	ch <- m.entry
}

// Collect implements prometheus.Collector.
func (m *anchorMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, a := range m.of.States() {
		behind := 0.0
		if !a.Since.IsZero() {
			behind = max(0, time.Since(a.Since).Seconds())
		}
		ch <- prometheus.MustNewConstMetric(m.behind, prometheus.GaugeValue, behind, a.Name)
		ch <- prometheus.MustNewConstMetric(m.entry, prometheus.GaugeValue, float64(a.Seq), a.Name)
		ch <- prometheus.MustNewConstMetric(m.attempts, prometheus.CounterValue, float64(a.Written), a.Name, "written")
		ch <- prometheus.MustNewConstMetric(m.attempts, prometheus.CounterValue, float64(a.Failed), a.Name, "failed")
	}
}

// NewReview makes the metric of whether the state is in review, and why.
func NewReview(st *store.Store) prometheus.Collector {
	return &inReview{st, prometheus.NewDesc("portcullis_state_in_review", "1 while the state is in review, because it was restored, rolled back, or recovered from one member.", []string{"cause"}, nil)}
}

type inReview struct {
	store *store.Store
	desc  *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (r *inReview) Describe(ch chan<- *prometheus.Desc) { ch <- r.desc }

// reviewTime bounds how long a scrape waits for the store.
const reviewTime = 2 * time.Second

// Collect implements prometheus.Collector. While the store is away there is no value.
func (r *inReview) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), reviewTime)
	defer cancel()
	mark, err := review.Current(ctx, r.store)
	if err != nil {
		return
	}
	restored, back, recovered := 0.0, 0.0, 0.0
	switch {
	case mark == nil:
	case mark.RolledBack != nil:
		back = 1
	case len(mark.Recovered) > 0:
		recovered = 1
	default:
		restored = 1
	}
	ch <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, restored, "restored")
	ch <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, back, "rolled-back")
	ch <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, recovered, "recovered")
}

// auditMetrics are the metrics of the verification of the audit log.
type auditMetrics struct {
	of                    *verifier.Verifier
	good, whole, attempts *prometheus.Desc
}

// NewAudit creates the metrics of the verification of the audit log.
func NewAudit(of *verifier.Verifier) prometheus.Collector {
	return &auditMetrics{
		of:       of,
		good:     prometheus.NewDesc("portcullis_audit_verified_timestamp_seconds", "When the audit log was verified last and was whole, in Unix time; 0: not yet.", nil, nil),
		whole:    prometheus.NewDesc("portcullis_audit_whole", "0 while the audit log is altered, cut or rolled back, by the last verification of this instance.", nil, nil),
		attempts: prometheus.NewDesc("portcullis_audit_verifications_total", "Verifications of the audit log since the start, by what became of them.", []string{"result"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *auditMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.good
	ch <- m.whole
	ch <- m.attempts
}

// Collect implements prometheus.Collector.
func (m *auditMetrics) Collect(ch chan<- prometheus.Metric) {
	now := m.of.State()
	good, whole := 0.0, 1.0
	if !now.Good.IsZero() {
		good = float64(now.Good.UnixMilli()) / 1000
	}
	if now.Broken != nil {
		whole = 0
	}
	ch <- prometheus.MustNewConstMetric(m.good, prometheus.GaugeValue, good)
	ch <- prometheus.MustNewConstMetric(m.whole, prometheus.GaugeValue, whole)
	for result, n := range map[string]uint64{"whole": now.Whole, "broken": now.NotWhole, "failed": now.Failed} {
		ch <- prometheus.MustNewConstMetric(m.attempts, prometheus.CounterValue, float64(n), result)
	}
}
