package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/leader"
)

// NewLeadership are the metrics of leadership.
func NewLeadership(of *leader.Candidate) []prometheus.Collector {
	gauge := func(name, help string, value func(leader.State, time.Duration) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(of.State()) })
	}
	return []prometheus.Collector{
		gauge("portcullis_leader", "1 while this instance leads as Subnet Manager.", func(now leader.State, _ time.Duration) float64 {
			if now.Leads {
				return 1
			}
			return 0
		}),
		gauge("portcullis_leader_epoch", "Epoch of the leader that this instance knows.", func(now leader.State, _ time.Duration) float64 { return float64(now.Epoch) }),
		gauge("portcullis_leader_lease_seconds", "For how long the lease of this instance surely holds; 0 where it does not lead.",
			func(_ leader.State, left time.Duration) float64 { return left.Seconds() }),
	}
}
