package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/clientcert"
)

// clientAuthorities says when authorities of client certificates end.
type clientAuthorities struct {
	of   func() []clientcert.Authority
	desc *prometheus.Desc
}

// NewClientAuthorities creates the metric of the authorities of client certificates that of returns.
func NewClientAuthorities(of func() []clientcert.Authority) prometheus.Collector {
	return &clientAuthorities{of, prometheus.NewDesc("portcullis_client_ca_end_timestamp_seconds",
		"When the last certificate in the ca_file of an authority of client certificates ends, in Unix time.", []string{"authority"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *clientAuthorities) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect implements prometheus.Collector.
func (c *clientAuthorities) Collect(ch chan<- prometheus.Metric) {
	all := c.of()
	for n := range all {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(all[n].Ends().Unix()), all[n].Name)
	}
}
