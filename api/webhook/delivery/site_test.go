package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/events"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
)

// server is where messages are sent.
type server struct {
	mu     sync.Mutex
	fails  func(e *v1.CloudEvent) error // nil: it takes all
	hangs  bool                         // until the request ends
	got    []string                     // host and count of events that it took
	ids    []string
	tried  []time.Time
	bodies [][]byte
}

func (s *server) Send(ctx context.Context, id string, at time.Time, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried = append(s.tried, at)
	var e v1.CloudEvent
	if err := json.Unmarshal(body, &e); err != nil || e.ID != id {
		return fmt.Errorf("message %s has the body of %s: %w", id, e.ID, err)
	}
	if s.hangs {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return ctx.Err()
	}
	if s.fails != nil {
		if err := s.fails(&e); err != nil {
			return err
		}
	}
	s.ids, s.bodies = append(s.ids, id), append(s.bodies, body)
	s.got = append(s.got, fmt.Sprintf("%s%s %d", e.Data.Host, strings.TrimPrefix(e.Type, "portcullis.lock.changed"), e.Data.Count))
	return nil
}

func (s *server) set(fails func(*v1.CloudEvent) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = fails
}

func (s *server) has() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// attempts returns when messages were sent.
func (s *server) attempts() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tried)
}

var errDown = errors.New("connection refused")

func down(*v1.CloudEvent) error { return errDown }

type site struct {
	t       *testing.T
	backend *storetest.Compacting
	store   *store.Store
	hooks   []Webhook
}

func newSite(t *testing.T, hooks ...Webhook) *site {
	t.Helper()
	b := &storetest.Compacting{Backend: memory.New(time.Now)}
	return &site{t: t, backend: b, store: store.New(b, ""), hooks: hooks}
}

// start runs a service over the store, as one process does, until stop.
func (s *site) start() (svc *Service, stop func()) {
	s.t.Helper()
	svc = New(Options{Store: s.store.Twin(), Webhooks: s.hooks, Log: slog.New(slog.DiscardHandler), Random: func() float64 { return 1 }})
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); svc.Run(ctx, nil) }()
	synctest.Wait()
	return svc, func() { cancel(); <-done }
}

func (s *site) happens(hosts ...string) {
	s.t.Helper()
	for _, host := range hosts {
		_, err := s.store.Update(s.t.Context(), func(tx *store.Tx) error {
			return events.Record(s.t.Context(), tx, time.Now(), v1.Event{Type: events.LockChanged, By: events.ByEvidence, Cause: "unlocked", Host: host})
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *site) wants(to *server, want ...string) {
	s.t.Helper()
	synctest.Wait()
	if got := to.has(); !slices.Equal(got, want) {
		s.t.Errorf("delivered %q, want %q", got, want)
	}
}

func (s *site) state(svc *Service) v1.Webhook {
	s.t.Helper()
	list, err := svc.List(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return list.Items[0]
}

func of(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// pass has fake time go on in a bubble, and waits until all that was due has been done.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
