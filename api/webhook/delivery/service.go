package delivery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"portcullis/api/events"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

const (
	maxWaiting = 1000 // messages of a webhook; beyond that its position waits
	maxDead    = 500  // of a webhook; the oldest makes room
	maxError   = 256  // bytes of an error that is kept

	minPause = 5 * time.Second  // after the first attempt that failed
	maxPause = 15 * time.Minute // after many
	giveUp   = 72 * time.Hour   // after which a message that fails is a dead letter
	// reportAfter is how long all attempts fail before there is an event.
	reportAfter = time.Hour
	// together is how long dead letters that are sent once more wait for those of the same request, so that they are sent in order.
	together = time.Second
	// againAfter is the pause when the store did not answer.
	againAfter = 5 * time.Second
)

// unknown is the code of refusals that name what there is not.
const unknown = "webhook_unknown"

// Sender sends a message once. *webhook.Sender is one.
type Sender interface {
	Send(ctx context.Context, id string, at time.Time, body []byte) error
}

// Refresher is a Sender that wants to have all events on record once a minute, too.
type Refresher interface {
	Refresh(ctx context.Context, at time.Time, all []v1.Event) error
}

// Kinds of receivers. They are also the causes of the events about them.
const (
	KindWebhook      = "webhook"
	KindSyslog       = "syslog"
	KindAlertmanager = "alertmanager"
)

// Webhook is where events are sent.
type Webhook struct {
	Name   string // of no other one, without a slash
	Kind   string // empty: KindWebhook
	URL    string // for people
	Filter Filter
	Sender Sender
}

func (h *Webhook) kind() string { return cmp.Or(h.Kind, KindWebhook) }

// Options say what is sent where. Now is by default time.Now.
type Options struct {
	Store    *store.Store
	Webhooks []Webhook
	Log      *slog.Logger
	Now      func() time.Time
	Random   func() float64 // of pauses, from 0 to 1; by default math/rand
}

// Service sends events, shows what was not delivered, and has that sent again.
type Service struct {
	o Options

	mu     sync.Mutex
	counts map[string]*Count
}

// Count is what this process did for a webhook.
type Count struct {
	Kind                    string
	Delivered, Failed, Dead uint64
	Waiting                 int
	Oldest                  time.Time // of the messages that wait; zero: none does
	Failing                 time.Time // since when all attempts fail; zero: they do not, or another instance sends
}

// New returns a Service. It sends nothing before Run.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	s := &Service{o: o, counts: map[string]*Count{}}
	for i := range o.Webhooks {
		s.counts[o.Webhooks[i].Name] = &Count{Kind: o.Webhooks[i].kind()}
	}
	return s
}

// Guard makes it a condition of a transaction that this process is the one that sends.
type Guard func(ctx context.Context, tx *store.Tx) error

// Run sends events until ctx ends. One process at a time may do so; guard sees to it that no other one's records are
// overwritten, nil where there is no other one.
func (s *Service) Run(ctx context.Context, guard Guard) {
	if guard == nil {
		guard = func(context.Context, *store.Tx) error { return nil }
	}
	var all sync.WaitGroup
	all.Go(func() { s.dropped(ctx, guard) })
	for i := range s.o.Webhooks {
		all.Go(func() { s.serve(ctx, &s.o.Webhooks[i], guard) })
	}
	all.Wait()
}

// serve sends the events of one webhook, whatever fails.
func (s *Service) serve(ctx context.Context, h *Webhook, guard Guard) {
	log := s.o.Log.With("webhook", h.Name)
	for ctx.Err() == nil {
		w := &worker{service: s, hook: h, log: log, guard: guard}
		err := w.run(ctx)
		if ctx.Err() != nil {
			break
		}
		log.Error("no events are sent", "err", err, "retry_in", againAfter)
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
	s.count(h.Name, func(c *Count) { c.Waiting, c.Oldest, c.Failing = 0, time.Time{}, time.Time{} })
}

// dropped ends what was reported of receivers that the configuration does not name any more. Nothing else would.
func (s *Service) dropped(ctx context.Context, guard Guard) {
	for ctx.Err() == nil {
		_, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
			if err := guard(ctx, tx); err != nil {
				return err
			}
			return s.endDropped(ctx, tx)
		})
		if err == nil || ctx.Err() != nil {
			return
		}
		s.o.Log.Error("receivers that the configuration does not name any more were not examined", "err", err, "retry_in", againAfter)
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
}

func (s *Service) endDropped(ctx context.Context, tx *store.Tx) error {
	list, _, err := states().List(ctx, tx, "")
	if err != nil {
		return err
	}
	for i := range list {
		name, was := list[i].Key, list[i].Value
		if _, known := s.counts[name]; known || !was.Reported {
			continue
		}
		was.Reported = false
		if err := states().Put(tx, name, was); err != nil {
			return err
		}
		kind := cmp.Or(was.Kind, KindWebhook)
		if err := s.deliversAgain(ctx, tx, name, kind, "the configuration does not name it any more"); err != nil {
			return err
		}
	}
	return nil
}

// deliversAgain records that a receiver is not failing any more, if no other one of its kind is: the event ends what was reported of all
// of them.
func (s *Service) deliversAgain(ctx context.Context, tx *store.Tx, name, kind, seen string) error {
	list, _, err := states().List(ctx, tx, "")
	if err != nil {
		return err
	}
	for i := range list {
		if st := &list[i].Value; list[i].Key != name && st.Reported && cmp.Or(st.Kind, KindWebhook) == kind {
			return nil
		}
	}
	return events.Record(ctx, tx, s.o.Now(), eventOf(events.WebhookDelivers, kind, name, seen))
}

// eventOf returns an event about a receiver.
func eventOf(kind, receiver, name, seen string) v1.Event {
	return v1.Event{Type: kind, By: events.ByService, Cause: receiver, Expected: "events at the " + receiver + " " + name, Seen: seen}
}

func (s *Service) count(name string, change func(*Count)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s.counts[name])
}

// Counts returns what this process did for each webhook, by name.
func (s *Service) Counts() map[string]Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]Count, len(s.counts))
	for name, c := range s.counts {
		out[name] = *c
	}
	return out
}

// find returns a webhook by its name.
func (s *Service) find(name string) (*Webhook, error) {
	for i := range s.o.Webhooks {
		if s.o.Webhooks[i].Name == name {
			return &s.o.Webhooks[i], nil
		}
	}
	return nil, &refusal.Error{
		Code: unknown, Status: refusal.NotFound, Detail: fmt.Sprintf("webhook %q is not known", refusal.Clip(name)),
		Hint: "portcullis webhook list shows those that the configuration names",
	}
}

// pause returns how long to wait after the nth attempt that failed.
func (s *Service) pause(n int) time.Duration {
	d := maxPause
	if n < 20 {
		d = min(maxPause, minPause<<(n-1))
	}
	return d/2 + time.Duration(s.o.Random()*float64(d/2))
}

var errEnded = errors.New("the store ended the list of changes")
