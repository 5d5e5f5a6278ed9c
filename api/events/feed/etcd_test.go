package feed

import (
	"log/slog"
	"testing"

	"portcullis/api/events"
	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/api/store/etcd/etcdtest"
	v1 "portcullis/api/v1"
)

// TestEtcdResumes has Debian's etcd keep the events: a client resumes at another instance, before and after etcd dropped old
// revisions.
func TestEtcdResumes(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 1)
	open := func() *store.Store {
		s, err := etcd.Open(t.Context(), etcd.Options{Remote: c.Remote(), Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	one := open()
	s := &site{t: t, store: one, feed: New(one, slog.New(slog.DiscardHandler))}
	first := s.watch(v1.EventQuery{}, "")
	first.reads("begin")
	s.happens("h1", "h2", "h1")
	first.reads("h1 1", "h2 1")
	s.feed = New(open(), slog.New(slog.DiscardHandler))
	again := s.watch(v1.EventQuery{}, first.last)
	again.reads("begin resumed", "h1 2")
	at, ok := events.ParsePosition(again.last)
	if !ok {
		t.Fatalf("%q is no position", again.last)
	}
	if _, err := c.Client("", "").Compact(t.Context(), at.Revision); err != nil {
		t.Fatal(err)
	}
	s.happens("h3")
	again.reads("h3 1")
	s.watch(v1.EventQuery{}, first.last).reads("begin resumed", "gap merged", "h1 2", "h3 1")
	at, _ = events.ParsePosition(again.last)
	if _, err := c.Client("", "").Compact(t.Context(), at.Revision); err != nil {
		t.Fatal(err)
	}
	last := s.watch(v1.EventQuery{}, again.last)
	last.reads("begin resumed")
	s.happens("h1")
	last.reads("h1 3")
}
