package removals_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"portcullis/api/admission"
	"portcullis/api/admission/admissiontest"
	"portcullis/api/audit"
	"portcullis/api/fabric"
	"portcullis/api/fabric/owed"
	"portcullis/api/reason"
	"portcullis/api/removals"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/sm"
)

// leaving is a backend that takes nothing while it is away.
type leaving struct {
	store.Backend
	away atomic.Bool
}

// Commit implements store.Backend.
func (l *leaving) Commit(ctx context.Context, b store.Batch) (int64, error) {
	if l.away.Load() {
		return 0, store.ErrAway
	}
	return l.Backend.Commit(ctx, b)
}

// TestReasonsOutlastTheStore: an order that is made while the store is away has its reason in the journal, and in the audit log when the
// store is back.
func TestReasonsOutlastTheStore(t *testing.T) {
	t.Parallel()
	backend := &leaving{Backend: memory.New(time.Now)}
	site := admissiontest.New(t, func(o *admission.Options) { o.Store = store.New(backend, "") })
	site.Expect("h1", []byte(`hosts:
- id: h1
  ek_sha256: 1111111111111111111111111111111111111111111111111111111111111111
  hcas:
  - {node_guid: 0x100, ports: [{port: 1, guid: 0x101, cable: 0x10/1}]}
`))
	debts := owed.New(storetest.Quiet())
	turn := fabric.NewTurn(fabric.Options{Store: site.Store, Log: storetest.Quiet(), Owed: debts})
	if _, err := turn.Intent(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := removals.New(removals.Options{
		Admission: site.Service(), Owed: debts, Link: turn.Store, Acts: func() bool { return true }, Log: storetest.Quiet(),
		Mark: func(context.Context, string, v1.HealthMark) (*v1.FabricHealth, error) { return &v1.FabricHealth{}, nil },
	})
	backend.away.Store(true)
	if _, err := r.Release(reason.With(t.Context(), "it is loud"), "olga", "h1"); err != nil {
		t.Fatal(err)
	}
	backend.away.Store(false)
	if got := site.Host("h1"); got.Cluster == "" {
		t.Fatalf("the store took the order: %+v", got)
	}
	if err := debts.Settle(t.Context(), site.Store, owed.Carry{
		Removal: func(ctx context.Context, r owed.Removal) (int64, error) {
			return site.Service().Record(ctx, admission.Ordered{Host: r.Host, Cluster: r.Cluster, Epoch: r.Epoch, Actor: r.Actor, Time: r.Time, Reason: r.Reason})
		},
		Facts: func(context.Context, []sm.Fact) error { return nil },
	}); err != nil {
		t.Fatal(err)
	}
	page, err := audit.Book{Store: site.Store}.List(t.Context(), v1.AuditQuery{Actor: "olga", Limit: v1.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range page.Items {
		got = append(got, e.Action+": "+e.Reason)
	}
	if want := []string{"host.release: it is loud", "host.release.ordered: it is loud"}; !slices.Equal(got, want) {
		t.Errorf("entries %q, want %q", got, want)
	}
}
