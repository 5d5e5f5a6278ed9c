package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/audit/anchor"
	"portcullis/api/review"
	v1 "portcullis/api/v1"
)

const (
	// judgeRetry is the pause before the state is compared with its anchors again.
	judgeRetry = time.Second
	// flushTime bounds how long the end of the service waits for the last anchors.
	flushTime = 8 * time.Second
)

// newAnchors makes what anchors the audit log, and holds the state against what is anchored of it. It returns before ctx
// ends only when that is done: a state that was rolled back must be in review before anything of it counts.
func (s *service) newAnchors(ctx context.Context) error {
	c := s.config
	s.anchors = anchor.New(anchor.Options{
		Store: s.store, Sinks: append([]anchor.Sink{anchor.Journal{Log: s.log}}, s.parts.anchors...), Every: c.Audit.Every, Tell: c.Audit.TellAfter, Service: c.serviceName(),
		Alone: len(c.Etcd.Endpoints) == 0 && c.Cluster.Name == "", Log: s.log,
	})
	for {
		err := s.anchors.Judge(ctx)
		if err == nil {
			return nil
		}
		s.log.Error("the state is not held against its anchors yet, and nothing of it counts before", "error", err, "retry_in", judgeRetry)
		notify(s.log, "STATUS=waits for the store, to compare the audit log with its anchors")
		select {
		case <-time.After(judgeRetry):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// flushAnchors anchors what was decided last, at the end of the service.
func (s *service) flushAnchors(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTime)
	defer cancel()
	s.anchors.Flush(ctx)
}

// anchorsCondition says which sinks lack the head of the audit log. The service does its job though.
func (s *service) anchorsCondition(now time.Time) []v1.Condition {
	if s.anchors == nil {
		return nil
	}
	var lacking []string
	for _, a := range s.anchors.States() {
		if !a.Since.IsZero() && a.Err != nil && now.Sub(a.Since) >= s.config.Audit.TellAfter {
			lacking = append(lacking, fmt.Sprintf("%s lacks the head of the audit log since %s: %v", a.Name, a.Since.UTC().Format(time.RFC3339), a.Err))
		}
	}
	if s.anchors.Held() {
		lacking = append(lacking, "nothing is anchored before the review of the state has ended")
	}
	return []v1.Condition{{Name: "anchors", OK: true, Detail: strings.Join(lacking, "; ")}}
}

// reviewDetail says why a state is in review.
func reviewDetail(m *review.Mark) string {
	text := "in review since " + m.Since.Format(time.RFC3339) + ": only what backup and fabric agree on is granted; portcullis restore review"
	if len(m.Recovered) > 0 {
		text = "in review since " + m.Since.Format(time.RFC3339) + ": " + m.From() + "; only what it and the fabric agree on is granted; portcullis restore review"
	}
	if m.RolledBack != nil {
		text = "in review since " + m.Since.Format(time.RFC3339) + ": the state was rolled back: " + m.RolledBack.String() +
			"; only what it and the fabric agree on is granted; portcullis restore review"
	}
	return text
}

// anchorMetrics are the metrics of anchors.
type anchorMetrics struct {
	of                      *anchor.Keeper
	behind, attempts, entry *prometheus.Desc
}

func newAnchorMetrics(of *anchor.Keeper) *anchorMetrics {
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

// newInReview makes the metric of whether the state is in review, and why.
func (s *service) newInReview() prometheus.Collector {
	return &inReview{s, prometheus.NewDesc("portcullis_state_in_review", "1 while the state is in review, because it was restored, rolled back, or recovered from one member.", []string{"cause"}, nil)}
}

type inReview struct {
	s    *service
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (r *inReview) Describe(ch chan<- *prometheus.Desc) { ch <- r.desc }

// reviewTime bounds how long a scrape waits for the store.
const reviewTime = 2 * time.Second

// Collect implements prometheus.Collector. While the store is away there is no value.
func (r *inReview) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), reviewTime)
	defer cancel()
	mark, err := review.Current(ctx, r.s.store)
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
