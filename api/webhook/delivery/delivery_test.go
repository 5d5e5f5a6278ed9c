package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"portcullis/api/events"
	"portcullis/api/leader"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/api/webhook"
)

func TestDelivers(t *testing.T) {
	of(t, func(t *testing.T) {
		to, severe := &server{}, &server{}
		s := newSite(t, Webhook{Name: "a", Sender: to}, Webhook{Name: "b", Sender: severe, Filter: Filter{Types: []string{events.CertificateEnds}, Severity: events.Warning}})
		s.happens("before")
		svc, stop := s.start()
		defer stop()
		s.happens("h1", "h2", "h1", "h1")
		_, err := s.store.Update(t.Context(), func(tx *store.Tx) error {
			return events.Record(t.Context(), tx, time.Now(), v1.Event{Type: events.CertificateEnds, By: events.ByService, Cause: "soon"})
		})
		if err != nil {
			t.Fatal(err)
		}
		// The third time of a type that happens often is in no message: the audit log does not have it either.
		s.wants(to, "h1 1", "h2 1", "h1 2", "portcullis.certificate.ends 1")
		s.wants(severe, "portcullis.certificate.ends 1")
		if c := svc.Counts()["a"]; c.Delivered != 4 || c.Failed != 0 || c.Waiting != 0 {
			t.Errorf("%+v", c)
		}
		if st := s.state(svc); st.Delivered.IsZero() || !st.Failing.IsZero() || st.Waiting != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// What fails is tried again, with the same id, after pauses that grow, and what comes meanwhile is not lost.
func TestRetries(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &server{fails: down}
		s := newSite(t, Webhook{Name: "a", Sender: to})
		svc, stop := s.start()
		defer stop()
		s.happens("h1", "h2", "h3")
		synctest.Wait()
		if n := len(to.attempts()); n != 1 {
			t.Fatalf("%d attempts at once, want one: the server is down", n)
		}
		if st := s.state(svc); st.Waiting != 3 || st.Error != errDown.Error() || st.Failing.IsZero() {
			t.Errorf("%+v", st)
		}
		pass(3 * time.Hour)
		tried := to.attempts()
		for i := 1; i < len(tried); i++ {
			want := min(maxPause, minPause<<(i-1))
			if got := tried[i].Sub(tried[i-1]); got < want || got > 2*want {
				t.Errorf("attempt %d comes %v after the one before, want %v", i+1, got, want)
			}
		}
		if n := len(tried); n < 10 || n > 25 {
			t.Errorf("%d attempts in three hours", n)
		}
		to.set(nil)
		pass(maxPause + time.Second)
		s.happens("h4")
		synctest.Wait()
		got := to.has()
		slices.Sort(got)
		if want := []string{"h1 1", "h2 1", "h3 1", "h4 1", "portcullis.webhook.delivers 1", "portcullis.webhook.failing 1"}; !slices.Equal(got, want) {
			t.Errorf("delivered %q, want %q", got, want)
		}
		if st := s.state(svc); st.Waiting != 0 || st.Error != "" || !st.Failing.IsZero() {
			t.Errorf("%+v", st)
		}
	})
}

// A restart at any moment, also while messages wait, loses none.
func TestRestartLosesNothing(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &server{}
		s := newSite(t, Webhook{Name: "a", Sender: to})
		_, stop := s.start()
		s.happens("h1")
		s.wants(to, "h1 1")
		stop()
		s.happens("h2")
		to.set(down)
		_, stop = s.start()
		s.happens("h3")
		synctest.Wait()
		stop()
		s.happens("h4")
		to.set(nil)
		pass(minPause + time.Second)
		_, stop = s.start()
		defer stop()
		synctest.Wait()
		got := to.has()
		slices.Sort(got)
		if want := []string{"h1 1", "h2 1", "h3 1", "h4 1"}; !slices.Equal(got, want) {
			t.Errorf("delivered %q, want %q", got, want)
		}
	})
}

// Where single changes are no longer kept, each event comes with its count.
func TestCompacted(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &server{}
		s := newSite(t, Webhook{Name: "a", Sender: to})
		_, stop := s.start()
		stop()
		s.happens("h1", "h1", "h1", "h2")
		snap, err := s.store.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.backend.Compact(snap.Revision)
		_, stop = s.start()
		defer stop()
		s.wants(to, "h1 3", "h2 1")
		s.happens("h2")
		s.wants(to, "h1 3", "h2 1", "h2 2")
	})
}

// One message that the server does not want holds up no other. After three days it is a dead letter, which can be sent once more.
func TestDeadLetters(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &server{}
		s := newSite(t, Webhook{Name: "a", Sender: to})
		svc, stop := s.start()
		defer stop()
		to.set(refusing("bad", 422))
		s.happens("bad", "h1")
		s.wants(to, "h1 1")
		pass(giveUp + time.Hour)
		s.happens("h2")
		s.wants(to, "h1 1", "h2 1")
		list, err := svc.DeadLetters(t.Context(), "a")
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		l := &list.Items[0]
		if l.Message.Data.Host != "bad" || l.ID != l.Message.ID || l.Attempts < 10 || l.Error != "the server answers 422 Unprocessable Entity" {
			t.Errorf("%+v", l)
		}
		if st := s.state(svc); st.Dead != 1 || st.Waiting != 0 || !st.Failing.IsZero() {
			t.Errorf("%+v", st)
		}
		to.set(nil)
		other := New(Options{Store: s.store.Twin(), Webhooks: s.hooks, Log: slog.New(slog.DiscardHandler)})
		if _, err := other.Replay(t.Context(), "ann", "a", v1.Replay{IDs: []string{l.ID, "other"}}); err == nil || !strings.Contains(err.Error(), `no dead letter "other"`) {
			t.Errorf("an unknown one: %v", err)
		}
		done, err := other.Replay(t.Context(), "ann", "a", v1.Replay{IDs: []string{l.ID}})
		if err != nil || done.Count != 1 {
			t.Fatalf("%+v, %v", done, err)
		}
		pass(together)
		s.wants(to, "h1 1", "h2 1", "bad 1")
		if to.ids[2] != l.ID {
			t.Errorf("it came with the id %s, want %s", to.ids[2], l.ID)
		}
		if again, err := other.Replay(t.Context(), "ann", "a", v1.Replay{}); err != nil || again.Count != 0 {
			t.Errorf("once more: %+v, %v", again, err)
		}
		for _, name := range []string{"b", "", "a/"} {
			if _, err := svc.DeadLetters(t.Context(), name); err == nil {
				t.Errorf("webhook %q is known", name)
			}
		}
	})
}

func TestDeadLettersAreBounded(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &server{fails: down}
		s := newSite(t, Webhook{Name: "a", Sender: to})
		old := time.Now().Add(-giveUp)
		body, _ := json.Marshal(v1.CloudEvent{ID: "last"})
		_, err := s.store.Update(t.Context(), func(tx *store.Tx) error {
			for n := range maxDead {
				id := fmt.Sprintf("%04d", n)
				if err := dead().Put(tx, keyOf("a", id), letter{ID: id, Body: json.RawMessage(`{}`), First: old.Add(-time.Duration(maxDead-n) * time.Second)}); err != nil {
					return err
				}
			}
			return waiting().Put(tx, keyOf("a", "last"), letter{ID: "last", Body: body, First: old})
		})
		if err != nil {
			t.Fatal(err)
		}
		svc, stop := s.start()
		defer stop()
		list, err := svc.DeadLetters(t.Context(), "a")
		if err != nil || len(list.Items) != maxDead || list.Items[0].ID != "0001" || list.Items[maxDead-1].ID != "last" {
			t.Errorf("%d of them, %v", len(list.Items), err)
		}
		if c := svc.Counts()["a"]; c.Dead != 1 || c.Waiting != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// Of a webhook that is down so many messages wait, and the rest stays in the list of events until there is room.
func TestWaitingIsBounded(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &server{fails: down}
		s := newSite(t, Webhook{Name: "a", Sender: to, Filter: Filter{Types: []string{events.LockChanged}}})
		svc, stop := s.start()
		defer stop()
		for n := range maxWaiting + 50 {
			s.happens(fmt.Sprint("h", n))
		}
		synctest.Wait()
		if st := s.state(svc); st.Waiting != maxWaiting {
			t.Errorf("%d wait", st.Waiting)
		}
		to.set(nil)
		pass(maxPause)
		if got := to.has(); len(got) != maxWaiting+50 {
			t.Errorf("%d were delivered", len(got))
		}
	})
}

// A server that does not answer delays no other one.
func TestSlowDelaysNoOther(t *testing.T) {
	of(t, func(t *testing.T) {
		slow, quick := &server{hangs: true}, &server{}
		s := newSite(t, Webhook{Name: "slow", Sender: slow}, Webhook{Name: "quick", Sender: quick})
		_, stop := s.start()
		defer stop()
		s.happens("h1", "h2")
		s.wants(quick, "h1 1", "h2 1")
		s.wants(slow)
	})
}

// An event reports a webhook that has failed for an hour, once, and another one that it is back.
func TestFailuresAreReported(t *testing.T) {
	of(t, func(t *testing.T) {
		to, other := &server{fails: down}, &server{}
		s := newSite(t, Webhook{Name: "a", Sender: to, Filter: Filter{Types: []string{events.LockChanged}}}, Webhook{Name: "b", Sender: other})
		_, stop := s.start()
		s.happens("h1")
		pass(reportAfter / 2)
		s.wants(other, "h1 1")
		stop()
		_, stop = s.start()
		defer stop()
		pass(5 * time.Hour)
		s.wants(other, "h1 1", "portcullis.webhook.failing 1")
		to.set(nil)
		pass(maxPause)
		s.wants(other, "h1 1", "portcullis.webhook.failing 1", "portcullis.webhook.delivers 1")
	})
}

// A store that was restored has other positions: what happened before is not sent.
func TestRestoredStore(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &server{}
		s := newSite(t, Webhook{Name: "a", Sender: to})
		_, err := s.store.Update(t.Context(), func(tx *store.Tx) error {
			return states().Put(tx, "a", state{Position: "0123456789abcdef-1-0000000000000000"})
		})
		if err != nil {
			t.Fatal(err)
		}
		s.happens("h1")
		_, stop := s.start()
		defer stop()
		s.happens("h2")
		s.wants(to, "h2 1")
	})
}

// Of several instances one sends, another one goes on where it ended, and one that no longer leads writes no record.
func TestChangeOfLeader(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &server{}
		s := newSite(t, Webhook{Name: "a", Sender: to})
		began := time.Now()
		clock := func() leader.Instant { return leader.Instant(time.Since(began)) }
		terms := make(chan *leader.Term, 4)
		instance := func(name string) (stop func()) {
			svc := New(Options{Store: s.store.Twin(), Webhooks: s.hooks, Log: slog.New(slog.DiscardHandler), Random: func() float64 { return 1 }})
			c := leader.New(leader.Options{Store: s.store.Twin(), Role: "webhooks", Instance: name, TTL: 10 * time.Second, Clock: clock})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = c.Run(ctx, func(ctx context.Context, term *leader.Term) error {
					terms <- term
					svc.Run(ctx, term.Guard)
					return nil
				})
			}()
			synctest.Wait()
			return func() { cancel(); <-done }
		}
		stopA := instance("a")
		first := <-terms
		stopB := instance("b")
		defer stopB()
		s.happens("h1")
		s.wants(to, "h1 1")
		to.set(down)
		s.happens("h2")
		synctest.Wait()
		stopA()
		to.set(nil)
		s.happens("h3")
		pass(time.Minute)
		<-terms
		got := to.has()
		slices.Sort(got)
		if want := []string{"h1 1", "h2 1", "h3 1"}; !slices.Equal(got, want) {
			t.Errorf("delivered %q, want %q", got, want)
		}
		late := &worker{service: New(Options{Store: s.store.Twin(), Webhooks: s.hooks}), hook: &s.hooks[0], guard: first.Guard, at: events.Position{Series: "0123456789abcdef", Revision: 1}}
		if err := late.record(t.Context()); !errors.Is(err, leader.ErrDeposed) {
			t.Errorf("the former leader writes: %v", err)
		}
	})
}

func TestTest(t *testing.T) {
	of(t, func(t *testing.T) {
		to := &server{}
		s := newSite(t, Webhook{Name: "a", Sender: to})
		svc := New(Options{Store: s.store, Webhooks: s.hooks, Log: slog.New(slog.DiscardHandler)})
		got, err := svc.Test(t.Context(), "ann", "a")
		if err != nil || got.Error != "" || len(to.bodies) != 1 || to.ids[0] != got.ID {
			t.Fatalf("%+v, %v", got, err)
		}
		to.set(down)
		if got, err = svc.Test(t.Context(), "ann", "a"); err != nil || got.Error != errDown.Error() {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := svc.Test(t.Context(), "ann", "b"); err == nil {
			t.Error("an unknown webhook is tested")
		}
	})
}

// refusing is a server that answers a status to events of one host, and takes all others.
func refusing(host string, status int) func(*v1.CloudEvent) error {
	return func(e *v1.CloudEvent) error {
		if e.Data.Host == host {
			return &webhook.AnswerError{Status: status}
		}
		return nil
	}
}
