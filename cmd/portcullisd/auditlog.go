package main

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/audit/verifier"
)

// verifyEvery is the pause between two verifications of the audit log.
const verifyEvery = time.Hour

// newVerifier makes what verifies the audit log.
func (s *service) newVerifier() *verifier.Verifier {
	s.status.set(partAudit, "")
	return verifier.New(verifier.Options{
		Store: s.store, Every: verifyEvery, Service: s.config.serviceName(), Shared: s.config.shared(), Log: s.log,
		OnState: func(now verifier.State) { s.status.set(partAudit, auditDetail(&now)) },
	})
}

// auditDetail says what /readyz shows of the audit log.
func auditDetail(now *verifier.State) string {
	if now.Broken == nil {
		return ""
	}
	good := "no verification before found it whole"
	if !now.Good.IsZero() {
		good = fmt.Sprintf("it was whole at %s with %d entries", now.Good.UTC().Format(time.RFC3339), now.Head.Seq)
	}
	more := ""
	if n := len(now.Open); n > 1 {
		more = fmt.Sprintf(", and %d more breaks", n-1)
	}
	return fmt.Sprintf("the audit log is not whole (%s) since %s: %s%s; %s", now.Broken.Cause, now.Since.UTC().Format(time.RFC3339), now.Broken.Text, more, good)
}

// auditMetrics are the metrics of the verification of the audit log.
type auditMetrics struct {
	of                    *verifier.Verifier
	good, whole, attempts *prometheus.Desc
}

func newAuditMetrics(of *verifier.Verifier) *auditMetrics {
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
