package feed

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
	"portcullis/api/sse"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
)

// site is a store with events, and the service that streams them.
type site struct {
	t       *testing.T
	backend *storetest.Compacting
	store   *store.Store
	feed    *Service
}

func newSite(t *testing.T) *site {
	t.Helper()
	b := &storetest.Compacting{Backend: memory.New(time.Now)}
	s := store.New(b, "")
	return &site{t: t, backend: b, store: s, feed: New(s, slog.New(slog.DiscardHandler))}
}

// compact drops single changes.
func (s *site) compact() {
	s.t.Helper()
	snap, err := s.store.Snapshot(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	s.backend.Compact(snap.Revision)
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

// client is one that reads a stream.
type client struct {
	t    *testing.T
	s    *Stream
	stop context.CancelFunc
	last string // id
}

func (s *site) watch(q v1.EventQuery, after string) *client {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	stream, err := s.feed.Watch(ctx, "vic", &Query{EventQuery: q, After: after})
	if err != nil {
		s.t.Fatal(err)
	}
	return &client{s.t, stream, stop, after}
}

// end ends the stream, and returns when it counts no more.
func (c *client) end() {
	c.stop()
	for open := true; open; {
		_, open = <-c.s.C
	}
}

// reads reads messages and compares them with those that are wanted.
func (c *client) reads(want ...string) {
	c.t.Helper()
	for _, w := range want {
		m, ok := <-c.s.C
		if got := text(c.t, &m); !ok || got != w {
			c.t.Fatalf("message %q (%v), want %q", got, ok, w)
		}
		if m.ID == "" {
			c.t.Errorf("message %q has no id", w)
		}
		c.last = m.ID
	}
}

func text(t *testing.T, m *sse.Message) string {
	t.Helper()
	var e struct {
		ID, Host, Reason string
		Count            int
		Resumed          bool
	}
	if err := json.Unmarshal(m.Data, &e); err != nil {
		t.Fatal(err)
	}
	switch {
	case m.Event == Event && e.ID != m.ID:
		t.Errorf("an event with id %s is sent as %s", e.ID, m.ID)
	case m.Event == Event:
		return fmt.Sprintf("%s %d", e.Host, e.Count)
	case e.Resumed:
		return m.Event + " resumed"
	}
	return strings.TrimSpace(m.Event + " " + e.Reason)
}

// TestViolationsOfFabric: a stream that asks for it says when the list of violations changed, and when that is not known; what it
// says has no id, so a client that was cut off resumes its events, and hears of violations at once.
func TestViolationsOfFabric(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var sum uint64
		var blind error
		var mu sync.Mutex
		set := func(next uint64, err error) {
			mu.Lock()
			defer mu.Unlock()
			sum, blind = next, err
		}
		s.feed.Violations = func() (uint64, error) {
			mu.Lock()
			defer mu.Unlock()
			return sum, blind
		}
		open := func(after string) *client {
			ctx, stop := context.WithCancel(t.Context())
			stream, err := s.feed.Watch(ctx, "vic", &Query{After: after, Violations: true})
			if err != nil {
				t.Fatal(err)
			}
			c := &client{t, stream, stop, after}
			return c
		}
		says := func(c *client, live bool) {
			t.Helper()
			m := <-c.s.C
			if want := fmt.Sprintf(`{"live":%v}`, live); m.Event != Violations || string(m.Data) != want || m.ID != "" {
				t.Fatalf("message %+v %s, want %s", m, m.Data, want)
			}
		}
		silent := func(c *client) {
			t.Helper()
			time.Sleep(10 * violationsEvery) // virtual time
			synctest.Wait()
			if n := len(c.s.C); n != 0 {
				t.Fatalf("%d messages though nothing changed", n)
			}
		}
		c := open("")
		c.reads("begin")
		says(c, true)
		silent(c)
		began := time.Now()
		set(1, nil)
		says(c, true)
		if took := time.Since(began); took > violationsEvery {
			t.Errorf("it took %v to say so", took)
		}
		silent(c)
		s.happens("h1")
		c.reads("h1 1")
		set(1, errors.New("not seen"))
		says(c, false)
		set(2, errors.New("not seen"))
		silent(c)
		set(1, nil)
		says(c, true)
		c.end()
		s.happens("h2")
		c = open(c.last)
		c.reads("begin resumed")
		got := []string{(<-c.s.C).Event, (<-c.s.C).Event}
		slices.Sort(got)
		if !slices.Equal(got, []string{Event, Violations}) {
			t.Errorf("messages %q after a cut", got)
		}
		c.end()

		s.feed.Violations = nil
		c = open("")
		c.reads("begin")
		says(c, false)
		c.end()
		c = s.watch(v1.EventQuery{}, "")
		c.reads("begin")
		silent(c)
		c.end()
	})
}

// A client that is cut off after any message has all others when it comes back, each once and in order.
func TestResumeLosesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.watch(v1.EventQuery{}, "")
	first.reads("begin")
	s.happens("h1", "h2", "h1", "h3", "h1")
	all := []string{"h1 1", "h2 1", "h1 2", "h3 1", "h1 3"}
	for n := range all {
		if n > 0 {
			first.reads(all[n-1])
		}
		again := s.watch(v1.EventQuery{}, first.last)
		again.reads("begin resumed")
		again.reads(all[n:]...)
		again.end()
	}
}

// A position survives the restart of a service, and is one for other instances.
func TestOtherInstanceResumes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.watch(v1.EventQuery{}, "")
	s.happens("h1")
	first.reads("begin", "h1 1")
	s.happens("h2")
	s.feed = New(s.store.Twin(), slog.New(slog.DiscardHandler))
	s.watch(v1.EventQuery{}, first.last).reads("begin resumed", "h2 1")
}

// Where single changes are no longer kept, each event follows once with its count, and a gap says so if times may have been merged.
func TestCompactedChangesAreMerged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.watch(v1.EventQuery{}, "")
	first.reads("begin")
	s.happens("h1", "h2")
	s.compact()
	s.watch(v1.EventQuery{}, first.last).reads("begin resumed", "h1 1", "h2 1")
	s.happens("h1", "h1")
	s.compact()
	again := s.watch(v1.EventQuery{}, first.last)
	again.reads("begin resumed", "gap merged", "h2 1", "h1 3")
	s.happens("h2")
	again.reads("h2 2")
	other := s.watch(v1.EventQuery{Host: "h3"}, first.last)
	s.happens("h3")
	other.reads("begin resumed", "h3 1")
}

func TestGapsAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.happens("h1")
	first := s.watch(v1.EventQuery{}, "")
	first.reads("begin")
	at, _ := events.ParsePosition(first.last)
	later, foreign := at, at
	later.Revision += 1000
	foreign.Series = "0123456789abcdef"
	for after, reason := range map[string]string{
		later.String(): "later", foreign.String(): "foreign", "7": "foreign", "x\ny": "foreign", strings.Repeat("0", 128): "foreign",
	} {
		c := s.watch(v1.EventQuery{}, after)
		c.reads("begin", "gap "+reason)
		again := s.watch(v1.EventQuery{}, c.last)
		again.reads("begin resumed")
		again.end()
		c.end()
	}
}

func TestRemovedEventsAreAGap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		first := s.watch(v1.EventQuery{}, "")
		first.reads("begin")
		s.happens("h1")
		first.reads("h1 1")
		time.Sleep(200 * 24 * time.Hour)
		ctx, stop := context.WithCancel(t.Context())
		go events.Follow(ctx, s.store, slog.New(slog.DiscardHandler), func(*v1.Event) {})
		synctest.Wait()
		begin, _ := events.ParsePosition(first.last)
		begin.Revision--
		s.watch(v1.EventQuery{}, begin.String()).reads("begin", "gap too-old")
		s.watch(v1.EventQuery{}, first.last).reads("begin resumed")
		stop()
	})
}

func TestFilters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	one, none := s.watch(v1.EventQuery{Host: "h2", Severity: events.Warning, Type: events.LockChanged}, ""), s.watch(v1.EventQuery{Type: events.LockFailed}, "")
	one.reads("begin")
	none.reads("begin")
	s.happens("h1", "h2")
	one.reads("h2 1")
	select {
	case m := <-none.s.C:
		t.Errorf("a stream of other events has %s", m.Data)
	default:
	}
}

// A client that does not read is dropped, learns so, and has the rest when it comes back.
func TestSlowClientIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		c := s.watch(v1.EventQuery{}, "")
		for range ahead + 10 {
			s.happens("h1")
		}
		time.Sleep(tooSlow + time.Second)
		synctest.Wait()
		c.reads("begin")
		for n := range ahead - 1 {
			c.reads(fmt.Sprintf("h1 %d", n+1))
		}
		if m, open := <-c.s.C; open {
			t.Fatalf("the stream goes on with %s", m.Data)
		}
		last := c.s.Last(t.Context(), sse.Drained)
		if got := text(t, &last); got != "end slow" {
			t.Errorf("the last message is %q", got)
		}
		again := s.watch(v1.EventQuery{}, c.last)
		again.reads("begin resumed", fmt.Sprintf("h1 %d", ahead))
		again.stop()
	})
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var stop context.CancelFunc
		open := func(of string) error {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := s.feed.Watch(ctx, of, &Query{})
			if err != nil {
				cancel()
				return err
			}
			stop = cancel
			return nil
		}
		for n := range maxAll {
			if err := open(fmt.Sprint("c", n/maxOfOne)); err != nil {
				t.Fatal(n, err)
			}
		}
		if err := open("c0"); err == nil || !strings.Contains(err.Error(), "credential c0 has 8 streams") {
			t.Errorf("one too many of a credential: %v", err)
		}
		if err := open("other"); err == nil || !strings.Contains(err.Error(), "128 streams") {
			t.Errorf("one too many of all: %v", err)
		}
		stop()
		synctest.Wait()
		if err := open("other"); err != nil {
			t.Errorf("after one ended: %v", err)
		}
	})
}

func TestReasonsOfEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ended, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	for _, tt := range []struct {
		how  sse.End
		want string
	}{{sse.Stopped, "end stopping"}, {sse.Over, "end credential"}} {
		last := s.watch(v1.EventQuery{}, "").s.Last(ended, tt.how)
		if got := text(t, &last); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	c := s.watch(v1.EventQuery{}, "")
	c.reads("begin")
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	for range c.s.C {
	}
	last := c.s.Last(t.Context(), sse.Drained)
	if got := text(t, &last); got != "end store" {
		t.Errorf("%q, want end store", got)
	}
}
