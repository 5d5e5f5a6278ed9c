package metrics

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/events"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Events counts events by type, and passes them to the log.
type Events struct{ *prometheus.CounterVec }

// NewEvents returns a counter of events, with all types there are.
func NewEvents() Events {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "portcullis_events_total", Help: "Events, by type, since the service was started.",
	}, []string{"event"})
	for _, k := range events.Kinds() {
		c.WithLabelValues(k.Type)
	}
	return Events{c}
}

// Follow passes events to the log and counts them until ctx ends.
func (c Events) Follow(ctx context.Context, st *store.Store, log *slog.Logger) {
	events.Follow(ctx, st, log, func(e *v1.Event) {
		if _, known := events.KindOf(e.Type); known { // labels stay bounded
			c.WithLabelValues(e.Type).Inc()
		}
	})
}
