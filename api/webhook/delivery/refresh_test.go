package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/events"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/api/webhook"
)

// keeper is a server that has all events on record, too.
type keeper struct {
	server
	refreshed []time.Time
	had       []int // events on record, each time
}

func (k *keeper) Refresh(_ context.Context, at time.Time, all []v1.Event) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refreshed = append(k.refreshed, at)
	if k.fails != nil {
		return k.fails(&v1.CloudEvent{})
	}
	k.had = append(k.had, len(all))
	return nil
}

func (k *keeper) counts() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.had)
}

// After a server was away, events come in their order.
func TestOrderAfterFailure(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &server{fails: down}
		s := newSite(t, Webhook{Name: "a", Sender: to, Filter: Filter{Types: []string{events.LockChanged}}})
		_, stop := s.start()
		defer func() { stop() }()
		s.happens("h1")
		pass(10 * time.Minute)
		s.happens("h2", "h3")
		pass(time.Hour)
		stop()
		_, stop = s.start()
		s.happens("h4")
		synctest.Wait()
		to.set(nil)
		pass(maxPause + time.Second)
		s.happens("h5")
		s.wants(to, "h1 1", "h2 1", "h3 1", "h4 1", "h5 1")
	})
}

// A Refresher has all events once a minute.
func TestRefresh(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &keeper{}
		s := newSite(t, Webhook{Name: "a", Sender: to})
		s.happens("before")
		_, stop := s.start()
		defer stop()
		if got := to.counts(); !slices.Equal(got, []int{1}) {
			t.Errorf("at the start: %d", got)
		}
		s.happens("h1")
		s.wants(&to.server, "h1 1")
		pass(3*time.Minute + time.Second)
		if got := to.counts(); !slices.Equal(got, []int{1, 2, 2, 2}) {
			t.Errorf("after three minutes: %d", got)
		}
	})
}

// A Refresher that is away is noticed though no event happens, is asked more and more seldom, and there is an event of its kind.
func TestRefreshFails(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &keeper{}
		to.fails = down
		s := newSite(t, Webhook{Name: "a", Kind: KindAlertmanager, Sender: to, Filter: Filter{Types: []string{events.LockChanged}}})
		began := time.Now()
		svc, stop := s.start()
		defer stop()
		if c := svc.Counts()["a"]; !c.Failing.Equal(began) || c.Kind != KindAlertmanager || c.Failed != 1 {
			t.Errorf("%+v", c)
		}
		if st := s.state(svc); st.Error != errDown.Error() || !st.Failing.Equal(began) || st.Kind != KindAlertmanager {
			t.Errorf("%+v", st)
		}
		pass(3 * time.Hour)
		if n := len(to.refreshed); n < 10 || n > 25 {
			t.Errorf("%d attempts in three hours", n)
		}
		all, err := events.All(t.Context(), s.store)
		if err != nil || len(all) != 1 || all[0].Type != events.WebhookFailing || all[0].Cause != KindAlertmanager || !strings.Contains(all[0].Expected, "the alertmanager a") {
			t.Errorf("%+v, %v", all, err)
		}
		to.set(nil)
		pass(maxPause + time.Second)
		if c := svc.Counts()["a"]; !c.Failing.IsZero() {
			t.Errorf("%+v", c)
		}
		if all, err = events.All(t.Context(), s.store); err != nil || len(all) != 2 {
			t.Errorf("%+v, %v", all, err)
		}
		stop()
		if c := svc.Counts()["a"]; !c.Failing.IsZero() || c.Waiting != 0 {
			t.Errorf("of one that does not send: %+v", c)
		}
	})
}

// One message that is refused delays neither the others nor what is refreshed.
func TestRefusedWithRefresh(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &keeper{}
		s := newSite(t, Webhook{Name: "a", Sender: to})
		svc, stop := s.start()
		defer stop()
		to.set(refusing("bad", 400))
		s.happens("bad", "h1")
		s.wants(&to.server, "h1 1")
		pass(2 * time.Minute)
		if c := svc.Counts()["a"]; len(to.refreshed) < 3 || !c.Failing.IsZero() || c.Waiting != 1 || c.Oldest.IsZero() {
			t.Errorf("%d times, %+v", len(to.refreshed), c)
		}
	})
}

// What ends an event is wanted beside the types and severities.
func TestAlso(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &server{}
		s := newSite(t, Webhook{Name: "a", Sender: to, Filter: Filter{Severity: events.Critical, Also: []string{events.FabricSeen}}})
		_, stop := s.start()
		defer stop()
		_, err := s.store.Update(t.Context(), func(tx *store.Tx) error {
			record := func(kind, cause string) error {
				return events.Record(t.Context(), tx, time.Now(), v1.Event{Type: kind, By: events.ByService, Cause: cause})
			}
			return errors.Join(record(events.FabricBlind, "nodes"), record(events.StoreShort, "soon"), record(events.StoreRoom, "room"), record(events.FabricSeen, "back"))
		})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := to.has() // of one transaction, in the order of the rows
		slices.Sort(got)
		if want := []string{"portcullis.fabric.blind 1", "portcullis.fabric.seen 1"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

// Two receivers of a kind share the event that one fails: it ends when both are well, or the other one is configured no more.
func TestFailingOfTwo(t *testing.T) {
	for _, drops := range []bool{false, true} {
		t.Run(fmt.Sprint("drops ", drops), func(t *testing.T) {
			of(t, func(t *testing.T) {
				one, two := &keeper{}, &keeper{}
				one.fails, two.fails = down, down
				s := newSite(t, Webhook{Name: "a", Kind: KindAlertmanager, Sender: one}, Webhook{Name: "b", Kind: KindAlertmanager, Sender: two}, Webhook{Name: "c", Sender: &server{}})
				_, stop := s.start()
				defer func() { stop() }()
				types := func(want ...string) {
					t.Helper()
					all, err := events.All(t.Context(), s.store)
					var got []string
					for i := range all {
						got = append(got, all[i].Type+" "+all[i].Cause)
					}
					if slices.Sort(got); err != nil || !slices.Equal(got, want) {
						t.Errorf("%q, %v, want %q", got, err, want)
					}
				}
				pass(2 * time.Hour)
				types("webhook.failing alertmanager")
				one.set(nil)
				pass(maxPause + time.Second)
				types("webhook.failing alertmanager")
				if drops {
					stop()
					s.hooks = s.hooks[:1]
					_, stop = s.start()
				} else {
					two.set(nil)
					pass(maxPause + time.Second)
				}
				types("webhook.delivers alertmanager", "webhook.failing alertmanager")
			})
		})
	}
}

// Dead letters that are sent once more together come in the order of their events, not in that of their ids as text.
func TestOrderOfReplay(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &server{}
		s := newSite(t, Webhook{Name: "a", Sender: to})
		svc, stop := s.start()
		defer stop()
		to.set(func(*v1.CloudEvent) error { return &webhook.AnswerError{Status: 422} })
		var want []string
		for n := range 40 { // revisions of one and of two or more digits
			host := fmt.Sprint("h", n)
			s.happens(host)
			want = append(want, host+" 1")
		}
		pass(giveUp + time.Hour)
		to.set(nil)
		if done, err := svc.Replay(t.Context(), "ann", "a", v1.Replay{}); err != nil || done.Count != len(want) {
			t.Fatalf("%+v, %v", done, err)
		}
		pass(together)
		s.wants(to, want...)
	})
}
