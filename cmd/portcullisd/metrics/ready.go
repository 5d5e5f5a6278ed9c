package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	v1 "portcullis/api/v1"
)

// readyTime bounds how long a scrape waits for the parts of the service.
const readyTime = 2 * time.Second

// ready is the metric of the parts that /readyz lists.
type ready struct {
	conditions func(context.Context) []v1.Condition
	desc       *prometheus.Desc
}

// NewReady creates the metric of the parts of the service. conditions returns what /readyz lists.
func NewReady(conditions func(context.Context) []v1.Condition) prometheus.Collector {
	return &ready{conditions, prometheus.NewDesc("portcullis_ready", "1 for each part of the service that /readyz lists as ready, 0 for the others.", []string{"part"}, nil)}
}

// Describe implements prometheus.Collector.
func (r *ready) Describe(ch chan<- *prometheus.Desc) { ch <- r.desc }

// Collect implements prometheus.Collector. The reasons are in /readyz: a label has few values.
func (r *ready) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	for _, c := range r.conditions(ctx) {
		value := 0.0
		if c.OK {
			value = 1
		}
		ch <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, value, c.Name)
	}
}
