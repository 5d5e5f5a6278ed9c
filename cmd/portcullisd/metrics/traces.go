package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/trace/otlp"
)

// traces are the metrics of traces.
type traces struct {
	of    func() otlp.Counts
	spans *prometheus.Desc
}

// NewTraces creates the metrics of the spans that this instance sends.
func NewTraces(of func() otlp.Counts) prometheus.Collector {
	return &traces{of: of, spans: prometheus.NewDesc("portcullis_trace_spans_total",
		"Spans since the start, by result: exported, dropped (the queue was full) or failed (the collector did not take them).", []string{"result"}, nil)}
}

// Describe implements prometheus.Collector.
func (t *traces) Describe(ch chan<- *prometheus.Desc) { ch <- t.spans }

// Collect implements prometheus.Collector.
func (t *traces) Collect(ch chan<- prometheus.Metric) {
	c := t.of()
	for result, n := range map[string]uint64{"exported": c.Exported, "dropped": c.Dropped, "failed": c.Failed} {
		ch <- prometheus.MustNewConstMetric(t.spans, prometheus.CounterValue, float64(n), result)
	}
}
