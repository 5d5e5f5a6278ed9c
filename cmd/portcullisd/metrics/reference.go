package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/measuredboot"
)

// waiverTimeout bounds what a scrape waits for the store.
const waiverTimeout = 5 * time.Second

// waivers counts waivers for metrics: each is a class of hosts whose boots are not compared with anything.
type waivers struct {
	of   *measuredboot.Service
	desc *prometheus.Desc
}

// NewWaivers creates the metric of waivers.
func NewWaivers(of *measuredboot.Service) prometheus.Collector {
	return &waivers{of, prometheus.NewDesc("portcullis_reference_waivers",
		"Waivers of reference values of measured boots, in force, or expired and not put away.", []string{"state"}, nil)}
}

// Describe implements prometheus.Collector.
func (w *waivers) Describe(ch chan<- *prometheus.Desc) { ch <- w.desc }

// Collect implements prometheus.Collector.
func (w *waivers) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), waiverTimeout)
	defer cancel()
	inForce, expired, err := w.of.Waivers(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(w.desc, err)
		return
	}
	for state, n := range map[string]int{"in_force": inForce, "expired": expired} {
		ch <- prometheus.MustNewConstMetric(w.desc, prometheus.GaugeValue, float64(n), state)
	}
}
