package admission

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// counted is a backend that counts how often it is asked.
type counted struct {
	store.Backend
	asked atomic.Int64
}

func (b *counted) Read(ctx context.Context, key string, prefix bool, rev int64) (store.Items, error) {
	b.asked.Add(1)
	return b.Backend.Read(ctx, key, prefix, rev)
}

func (b *counted) Get(ctx context.Context, keys []string, rev int64) (store.Items, error) {
	b.asked.Add(1)
	return b.Backend.Get(ctx, keys, rev)
}

// What is asked of the store because of changes that need no decision does not grow with the hosts that they concern, and the
// one host among them that needs one is settled.
func TestManySettledHosts(t *testing.T) {
	const hosts = 24
	backend := &counted{Backend: memory.New(time.Now)}
	l := newLab(t, store.New(backend, "/test/"))
	l.addHosts(hosts)
	l.tenantWithClusters("c1")
	ids := make([]string, hosts)
	for i := range ids {
		ids[i] = fmt.Sprint("host-", i+1)
		l.admit(ids[i], "c1")
	}
	slices.Sort(ids)
	snap, err := l.store.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o, err := l.svc.settleAll(t.Context(), snap)
	if err != nil {
		t.Fatal(err)
	}
	asked := func(some []string) int64 {
		before := backend.asked.Load()
		if err := l.svc.settleSome(t.Context(), o, some); err != nil {
			t.Fatal(err)
		}
		return backend.asked.Load() - before
	}
	if few, all := asked(ids[:fewHosts+1]), asked(ids); all > few {
		t.Errorf("the store is asked %d times for %d hosts and %d times for %d, want no more", few, fewHosts+1, all, hosts)
	}

	elsewhere := records.Port{NodeGUID: l.ports("host-7")[0].GUID - 1, Place: ib.Place{Switch: 0x10, Port: 30}}
	l.fabric.show(t, l.ports("host-7")[0].GUID, elsewhere)
	if err := l.svc.settleSome(t.Context(), o, ids); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		want := v1.PhaseAdmitted
		if id == "host-7" {
			want = v1.PhaseGranting
		}
		if got := l.host(id).Status.Phase; got != want {
			t.Errorf("host %s is %s, want %s", id, got, want)
		}
	}
}

// Changes that wait are followed together, in their order, and the end of a watch is still seen.
func TestWithMore(t *testing.T) {
	change := func(rev int64, keys ...string) (c store.Changes) {
		c.Revision = rev
		for _, k := range keys {
			c.Changes = append(c.Changes, store.Change{Key: k, Revision: rev})
		}
		return c
	}
	first := change(1, "a")
	first.Changes = append(first.Changes, store.Change{Key: "not ours"})[:1]
	more := make(chan store.Changes, 3)
	more <- change(2, "b", "c")
	more <- change(3, "d")
	got := withMore(first, more)
	var keys []string
	for _, c := range got.Changes {
		keys = append(keys, c.Key)
	}
	if !slices.Equal(keys, []string{"a", "b", "c", "d"}) || got.Revision != 3 || got.Err != nil {
		t.Errorf("got %v at revision %d, error %v", keys, got.Revision, got.Err)
	}
	if kept := first.Changes[:2][1].Key; kept != "not ours" {
		t.Errorf("what lies behind the first changes became %q", kept)
	}
	more <- store.Changes{Err: context.Canceled}
	if got := withMore(change(4, "e"), more); got.Err == nil || len(got.Changes) != 1 {
		t.Errorf("got %d changes, error %v, want 1 and the error", len(got.Changes), got.Err)
	}
	close(more)
	if got := withMore(change(5, "f"), more); got.Err != nil || len(got.Changes) != 1 {
		t.Errorf("after the end: got %d changes, error %v, want 1 and none", len(got.Changes), got.Err)
	}
}
