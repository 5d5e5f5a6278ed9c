package readiness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/admission"
	"portcullis/api/store"
)

// aspectBrake is the aspect of the part admission that says whether automatic withdrawals are stopped.
const aspectBrake = "brake"

// Brakes says, in metrics and readiness, what the brakes on automatic withdrawals stop.
type Brakes struct {
	status        *Status
	engaged, held *prometheus.Desc

	mu    sync.Mutex
	state map[string]admission.Brake // by class
}

// NewBrakes returns brakes that stop nothing.
func NewBrakes(s *Status) *Brakes {
	return &Brakes{
		status:  s,
		engaged: prometheus.NewDesc("portcullis_admission_brake_engaged", "1 while memberships are kept although automatic causes would take them, by class of causes.", []string{"class"}, nil),
		held:    prometheus.NewDesc("portcullis_admission_brake_held_hosts", "Hosts whose memberships are kept though.", []string{"class"}, nil),
		state:   map[string]admission.Brake{admission.BrakeEvidence: {}, admission.BrakePlace: {}},
	}
}

// Describe implements prometheus.Collector.
func (b *Brakes) Describe(ch chan<- *prometheus.Desc) {
	ch <- b.engaged
	ch <- b.held
}

// Collect implements prometheus.Collector.
func (b *Brakes) Collect(ch chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for class, s := range b.state {
		engaged := 0.0
		if !s.Engaged.IsZero() {
			engaged = 1
		}
		ch <- prometheus.MustNewConstMetric(b.engaged, prometheus.GaugeValue, engaged, class)
		ch <- prometheus.MustNewConstMetric(b.held, prometheus.GaugeValue, float64(s.Held), class)
	}
}

// take notes the state of a brake.
func (b *Brakes) take(class string, s admission.Brake) {
	b.mu.Lock()
	if _, known := b.state[class]; known {
		b.state[class] = s
	}
	b.mu.Unlock()
	detail := ""
	if !s.Engaged.IsZero() {
		detail = fmt.Sprintf("%d hosts keep memberships since %s that automatic causes of class %s would take: portcullis admission brake show", s.Held, s.Engaged.Format(time.RFC3339), class)
	}
	b.status.SetAspect(Admission, aspectBrake+" "+class, detail)
}

// brakesRetry is the pause before the store is followed again.
const brakesRetry = time.Second

// Follow takes the state of the brakes from the store, now and after each change, until ctx ends.
func (b *Brakes) Follow(ctx context.Context, st *store.Store, log *slog.Logger) {
	for ctx.Err() == nil {
		err := b.watch(ctx, st)
		if ctx.Err() != nil {
			return
		}
		log.Error("the brakes on automatic withdrawals are not followed", "error", err, "retry_in", brakesRetry)
		select {
		case <-time.After(brakesRetry):
		case <-ctx.Done():
		}
	}
}

func (b *Brakes) watch(ctx context.Context, st *store.Store) error {
	snap, err := st.Snapshot(ctx)
	if err != nil {
		return err
	}
	list, _, err := admission.Brakes().List(ctx, snap, "")
	if err != nil {
		return err
	}
	for _, r := range list {
		b.take(r.Key, r.Value)
	}
	for ev := range admission.Brakes().Watch(ctx, st, snap.Revision) {
		if ev.Err != nil {
			return ev.Err
		}
		b.take(ev.Key, ev.Value)
	}
	return errors.New("watch ended")
}
