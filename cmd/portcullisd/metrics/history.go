package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Recording is how the recording of the fabric stands.
type Recording struct {
	Bytes   int64         // in all files
	Failing bool          // what happens now is not recorded
	Known   time.Duration // from the oldest time that is known until now
}

// history collects how the recording of the fabric stands.
type history struct {
	now                    func() (Recording, bool)
	bytes, failing, period *prometheus.Desc
}

// NewHistory creates the metrics of what is recorded of the fabric. now reports false where nothing is: there are no values then.
func NewHistory(now func() (Recording, bool)) prometheus.Collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("portcullis_history_"+name, help, nil, nil)
	}
	return &history{
		now:     now,
		bytes:   desc("bytes", "Bytes of the files that say how the fabric was."),
		failing: desc("failing", "1 while it cannot be recorded how the fabric changes, 0 while it can."),
		period:  desc("seconds", "Time since the oldest state of the fabric that is recorded here, gaps included."),
	}
}

// Describe implements prometheus.Collector.
func (h *history) Describe(ch chan<- *prometheus.Desc) {
	ch <- h.bytes
	ch <- h.failing
	ch <- h.period
}

// Collect implements prometheus.Collector.
func (h *history) Collect(ch chan<- prometheus.Metric) {
	s, recorded := h.now()
	if !recorded {
		return
	}
	failing := 0.0
	if s.Failing {
		failing = 1
	}
	ch <- prometheus.MustNewConstMetric(h.bytes, prometheus.GaugeValue, float64(s.Bytes))
	ch <- prometheus.MustNewConstMetric(h.failing, prometheus.GaugeValue, failing)
	ch <- prometheus.MustNewConstMetric(h.period, prometheus.GaugeValue, s.Known.Seconds())
}
