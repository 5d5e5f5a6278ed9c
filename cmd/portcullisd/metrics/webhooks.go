package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/webhook/delivery"
)

// webhooks are the metrics of webhooks.
type webhooks struct {
	of                                 *delivery.Service
	messages, waiting, behind, failing *prometheus.Desc
}

// NewWebhooks creates the metrics of the webhooks that this instance sends events to.
func NewWebhooks(of *delivery.Service) prometheus.Collector {
	name := []string{"webhook"}
	return &webhooks{
		of:       of,
		messages: prometheus.NewDesc("portcullis_webhook_messages_total", "Messages since the start, by result: delivered, failed (an attempt, which is repeated) or dead (not tried any more).", []string{"webhook", "result"}, nil),
		waiting:  prometheus.NewDesc("portcullis_webhook_waiting", "Messages that wait for another attempt; 0 where another instance sends.", name, nil),
		behind:   prometheus.NewDesc("portcullis_webhook_behind_seconds", "Age of the oldest message that waits; 0: none does, or another instance sends.", name, nil),
		failing:  prometheus.NewDesc("portcullis_webhook_failing_seconds", "Since when all attempts fail; 0: they do not, or another instance sends. kind is webhook, syslog or alertmanager.", []string{"webhook", "kind"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (w *webhooks) Describe(ch chan<- *prometheus.Desc) {
	ch <- w.messages
	ch <- w.waiting
	ch <- w.behind
	ch <- w.failing
}

// Collect implements prometheus.Collector.
func (w *webhooks) Collect(ch chan<- prometheus.Metric) {
	for name, c := range w.of.Counts() {
		for result, n := range map[string]uint64{"delivered": c.Delivered, "failed": c.Failed, "dead": c.Dead} {
			ch <- prometheus.MustNewConstMetric(w.messages, prometheus.CounterValue, float64(n), name, result)
		}
		ch <- prometheus.MustNewConstMetric(w.waiting, prometheus.GaugeValue, float64(c.Waiting), name)
		ch <- prometheus.MustNewConstMetric(w.behind, prometheus.GaugeValue, ageOf(c.Oldest), name)
		ch <- prometheus.MustNewConstMetric(w.failing, prometheus.GaugeValue, ageOf(c.Failing), name, c.Kind)
	}
}

// ageOf returns the seconds since a time; 0 where there is none.
func ageOf(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, time.Since(at).Seconds())
}
