package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	v1 "portcullis/api/v1"
)

// isolation is what was found when the isolation of all tenants was examined last.
type isolation struct {
	last                func() (*v1.Isolation, time.Time)
	read, pairs, absent *prometheus.Desc
}

// NewIsolation creates the metrics of the last examination of all tenants that this process made. last returns nil before the
// first; there is no value then.
func NewIsolation(last func() (*v1.Isolation, time.Time)) prometheus.Collector {
	return &isolation{
		last:   last,
		read:   prometheus.NewDesc("portcullis_isolation_examined_timestamp_seconds", "When the isolation of all tenants was examined last, in Unix time.", nil, nil),
		pairs:  prometheus.NewDesc("portcullis_isolation_pairs", "Pairs of tenants, or of a tenant and other hosts, by the verdict of that examination.", []string{"verdict"}, nil),
		absent: prometheus.NewDesc("portcullis_isolation_ports_missing", "Declared ports that were not found where they are declared, so that nothing is proven of them.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (i *isolation) Describe(ch chan<- *prometheus.Desc) {
	ch <- i.read
	ch <- i.pairs
	ch <- i.absent
}

// Collect implements prometheus.Collector.
func (i *isolation) Collect(ch chan<- prometheus.Metric) {
	found, at := i.last()
	if found == nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(i.read, prometheus.GaugeValue, float64(at.Unix()))
	for verdict, n := range map[string]int{v1.Isolated: found.Pairs.Isolated, v1.Leaks: found.Pairs.Leaks, v1.IsolationUnknown: found.Pairs.Unknown} {
		ch <- prometheus.MustNewConstMetric(i.pairs, prometheus.GaugeValue, float64(n), verdict)
	}
	missing := 0
	for _, p := range found.Parties {
		missing += p.Declared - p.Found
	}
	ch <- prometheus.MustNewConstMetric(i.absent, prometheus.GaugeValue, float64(missing))
}
