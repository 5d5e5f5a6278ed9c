package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/clock"
	"portcullis/api/clock/keeper"
)

// NewClock makes the metrics of the clock.
func NewClock(k *keeper.Keeper) []prometheus.Collector {
	jumps := func(cause string, ahead bool) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "portcullis_clock_jumps_total", Help: "Jumps of the machine's clock since the start, by direction.", ConstLabels: prometheus.Labels{"cause": cause},
		}, func() float64 { return float64(k.Jumps(ahead)) })
	}
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "portcullis_clock_off_seconds", Help: "How far the machine's clock is from the time that decisions rest on; less than 0 while it is behind the highest time seen.",
		}, func() float64 { st := k.Standing(); return st.Off().Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "portcullis_clock_believed", Help: "1 while the machine's clock is believed, 0 while nothing new is granted because it is not.",
		}, func() float64 {
			if st := k.Standing(); st.State != clock.Steady {
				return 0
			}
			return 1
		}),
		jumps("back", false), jumps("ahead", true),
	}
}
