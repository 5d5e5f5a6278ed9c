package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/credential"
	"portcullis/api/servercert"
)

// NewCertificateEnd makes the metric of when the TLS certificate ends.
func NewCertificateEnd(cert *servercert.Certificate) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "portcullis_tls_certificate_end_timestamp_seconds",
		Help: "When the first certificate of the API's TLS chain ends, in Unix time.",
	}, func() float64 { return float64(cert.Ends().Unix()) })
}

// NextTokenEnd returns when what tokensEvent says changes next, zero for never.
func NextTokenEnd(t *credential.Tokens, now time.Time) (next time.Time) {
	for _, p := range t.All() {
		if p.Expires.After(now) && (next.IsZero() || p.Expires.Before(next)) {
			next = p.Expires
		}
	}
	return next
}

// tokenMetrics says how many tokens there are and when the next one ends. No series names one.
type tokenMetrics struct {
	of          func() *credential.Tokens
	count, ends *prometheus.Desc
}

// NewTokens creates the metrics of the operator tokens that of returns.
func NewTokens(of func() *credential.Tokens) prometheus.Collector {
	return &tokenMetrics{
		of:    of,
		count: prometheus.NewDesc("portcullis_tokens", "Operator tokens, by whether they are good for long (valid), end soon, have ended, or have no end.", []string{"state"}, nil),
		ends:  prometheus.NewDesc("portcullis_token_next_end_timestamp_seconds", "When the next operator token ends, in Unix time; 0: none does.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *tokenMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.count
	ch <- m.ends
}

// Collect implements prometheus.Collector.
func (m *tokenMetrics) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	counts := map[string]int{"valid": 0, "soon": 0, "ended": 0, "endless": 0}
	for _, p := range m.of().All() {
		switch {
		case p.Expires.IsZero():
			counts["endless"]++
		case p.Ended(now):
			counts["ended"]++
		case p.Soon(now):
			counts["soon"]++
		default:
			counts["valid"]++
		}
	}
	for state, n := range counts {
		ch <- prometheus.MustNewConstMetric(m.count, prometheus.GaugeValue, float64(n), state)
	}
	ends := 0.0
	if next := NextTokenEnd(m.of(), now); !next.IsZero() {
		ends = float64(next.Unix())
	}
	ch <- prometheus.MustNewConstMetric(m.ends, prometheus.GaugeValue, ends)
}
