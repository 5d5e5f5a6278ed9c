package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/results"
	"portcullis/attest/result"
)

// signedResults counts attestation results for metrics.
type signedResults struct {
	of   *results.Service
	desc *prometheus.Desc
}

// NewResults creates the metric of signed attestation results.
func NewResults(of *results.Service) prometheus.Collector {
	return &signedResults{of, prometheus.NewDesc("portcullis_attestation_results_total",
		"Attestation results signed since the start, by the status in them.", []string{"status"}, nil)}
}

// Describe implements prometheus.Collector.
func (r *signedResults) Describe(ch chan<- *prometheus.Desc) { ch <- r.desc }

// Collect implements prometheus.Collector.
func (r *signedResults) Collect(ch chan<- prometheus.Metric) {
	for _, t := range []result.Tier{result.None, result.Affirming, result.Warning, result.Contraindicated} {
		ch <- prometheus.MustNewConstMetric(r.desc, prometheus.CounterValue, float64(r.of.Signed(t)), t.String())
	}
}
