package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/fabric/owed"
)

// NewOwed are the metrics of what the store is owed.
func NewOwed(k *owed.Keeper) []prometheus.Collector {
	var all []prometheus.Collector
	for kind, count := range map[string]func(owed.State) int{
		"fact": func(s owed.State) int { return s.Facts }, "removal": func(s owed.State) int { return s.Removals }, "note": func(s owed.State) int { return s.Notes },
	} {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "portcullis_store_owed", Help: "What waits for the store since it was away.", ConstLabels: prometheus.Labels{"kind": kind},
		}, func() float64 { return float64(count(k.State())) }))
	}
	return all
}
