package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/events"
	v1 "portcullis/api/v1"
)

// newTold makes the counter of events, with all types there are.
func newTold() *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "portcullis_events_total", Help: "Events, by type, since the service was started.",
	}, []string{"event"})
	for _, k := range events.Kinds() {
		c.WithLabelValues(k.Type)
	}
	return c
}

// followEvents passes events to the journal and the metrics until ctx ends.
func (s *service) followEvents(ctx context.Context) error {
	events.Follow(ctx, s.store, s.log, func(e *v1.Event) {
		if _, known := events.KindOf(e.Type); known { // labels stay bounded
			s.told.WithLabelValues(e.Type).Inc()
		}
	})
	return nil
}
