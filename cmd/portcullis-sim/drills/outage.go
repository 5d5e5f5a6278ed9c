package drills

import (
	"context"
	"errors"
	"os"
	"time"

	"portcullis/api/admission"
	"portcullis/api/fabric"
	"portcullis/api/fabric/owed"
	"portcullis/api/removals"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
)

// outage is a store that can be away.
type outage struct {
	store.Backend
	away bool
}

func (o *outage) err() error {
	if o.away {
		return store.ErrAway
	}
	return nil
}

// Read implements store.Backend.
func (o *outage) Read(ctx context.Context, key string, prefix bool, rev int64) (store.Items, error) {
	if o.away {
		return store.Items{}, o.err()
	}
	return o.Backend.Read(ctx, key, prefix, rev)
}

// Range implements store.Backend.
func (o *outage) Range(ctx context.Context, prefix, after string, limit int, rev int64) (store.Items, error) {
	if o.away {
		return store.Items{}, o.err()
	}
	return o.Backend.Range(ctx, prefix, after, limit, rev)
}

// Get implements store.Backend.
func (o *outage) Get(ctx context.Context, keys []string, rev int64) (store.Items, error) {
	if o.away {
		return store.Items{}, o.err()
	}
	return o.Backend.Get(ctx, keys, rev)
}

// Commit implements store.Backend.
func (o *outage) Commit(ctx context.Context, b store.Batch) (int64, error) {
	if o.away {
		return 0, o.err()
	}
	return o.Backend.Commit(ctx, b)
}

// onSocket is the operator on the machine's socket.
const onSocket = "local socket, uid 0"

// storeAway is T145: while the store is down, removals and fences that an operator orders on the machine are carried out
// and nothing is granted. Other hosts lose nothing. When the store is back, removals have won, also over a restart of the
// service.
func storeAway(s *drill.Scene) {
	dir, err := os.MkdirTemp("", "drill-")
	s.Must(err)
	defer os.RemoveAll(dir)
	v := newSite(s, options{credentials: []account{{name: "ann"}}})
	v.openJournal(dir)
	red := v.cluster("ann", "red", "h1", "h5", "h4", "h8")
	blue := v.cluster("ann", "blue", "h2", "h6")
	v.must("ann", "POST", "/v1/hosts/h3/assign", `{"cluster":"blue"}`) // it has not attested yet
	v.sync()
	v.VictimOf("h1", "h5", red)
	v.VictimOf("h2", "h6", blue)

	s.Tried("the store is stopped, and h7 and h3 are to be let in")
	v.mark()
	v.outage.away = true
	v.refused("store_unavailable", "ann", "POST", "/v1/hosts/h7/assign", `{"cluster":"red"}`)
	v.alone()
	for _, h := range []string{"h3", "h7"} {
		s.Check(len(v.TenantKeys(v.SwitchPort(h, 1))) == 0, "the switch port of %s got %v without the store", h, v.TenantKeys(v.SwitchPort(h, 1)))
	}

	s.Tried("h4 of red goes on to send while an operator orders that it be released, and that h8 be fenced")
	r := v.remover(s.Off(OrderJournal))
	_, err = r.Release(v.ctx(), onSocket, "h4")
	s.Check(err == nil, "the release of h4 is refused: %v", err)
	_, err = r.Fence(v.ctx(), onSocket, "h8", v1.Fence{Reason: "stolen"})
	s.Check(err == nil, "the fence of h8 is refused: %v", err)
	v.alone()
	v.removed(red, "without the store", "h4", "h8")
	if s.Off(OrderJournal) {
		return // there is nothing that could come back
	}

	s.Tried("the service is restarted without the store, which is back later with grants for h4 and h8")
	v.openJournal(dir)
	v.removed(red, "after the service was restarted", "h4", "h8")
	v.outage.away = false
	v.intend()
	v.removed(red, "when the store is back", "h4", "h8")
	v.settleOwed()
	v.sync()
	v.removed(red, "when the store has the orders", "h4", "h8")
	for _, h := range []string{"h4", "h8"} {
		host, err := v.admission.Host(v.ctx(), h)
		s.Must(err)
		s.Check(host.Cluster == "", "%s is in cluster %q by the store", h, host.Cluster)
	}
	v.audit(onSocket, "host.release.ordered", "recorded")
	s.Check(v.delivered("h1", "h5", red) && v.delivered("h2", "h6", blue), "hosts that were not removed do not reach each other")
	s.Stopped("an order is in force at once, whether the store is there or not, and the journal keeps it; what adds to the fabric needs the store")
}

// openJournal begins the service with the journal of a directory.
func (v *site) openJournal(dir string) {
	k, err := owed.Open(dir, v.log)
	v.scene.Must(err)
	v.owed = k
	v.restartService()
}

// remover is what the machine's socket asks. needsStore has it do what the store does alone.
func (v *site) remover(needsStore bool) *removals.Remover {
	return removals.New(removals.Options{
		Admission: v.admission, Owed: v.owed, Link: func() *fabric.Link { return v.turn.Store() }, Acts: func() bool { return true }, Log: v.log, Now: v.clock, NeedsStore: needsStore,
		Mark: func(_ context.Context, _ string, m v1.HealthMark) (*v1.FabricHealth, error) {
			place, err := ib.ParsePlace(m.Place)
			if err == nil {
				v.Step(&sm.HealthMarked{Place: place, Mark: health.MarkUnhealthy, Reason: m.Reason})
			}
			return &v1.FabricHealth{}, err
		},
	})
}

// alone lets the Subnet Manager come to rest while the store is away.
func (v *site) alone() {
	v.Want(v.turn.Alone())
	v.scene.Must(v.Settle(time.Minute))
	v.hear()
}

// hear has the service hear of what happened, which the store may not take.
func (v *site) hear() {
	var events []sm.Event
	for _, h := range v.Since(v.told) {
		events = append(events, h.Event)
		v.seen.OnEvent(h.Event)
	}
	v.told = v.Mark()
	v.seen.OnView(v.View())
	if _, err := v.turn.Report(v.ctx(), events, v.View()); !errors.Is(err, store.ErrAway) {
		v.scene.Must(err)
	}
}

// intend has the Subnet Manager do what the store and the journal want.
func (v *site) intend() {
	in, err := v.turn.Intent(v.ctx())
	v.scene.Must(err)
	v.Want(in)
	v.scene.Must(v.Settle(time.Minute))
}

// settleOwed brings into the store what it is owed.
func (v *site) settleOwed() {
	v.scene.Must(v.owed.Settle(v.ctx(), v.store, owed.Carry{
		Removal: func(ctx context.Context, r owed.Removal) (int64, error) {
			return v.admission.Record(ctx, admission.Ordered{Host: r.Host, Cluster: r.Cluster, Epoch: r.Epoch, Actor: r.Actor, Time: r.Time, Reason: r.Reason})
		},
		Facts: func(ctx context.Context, facts []sm.Fact) error { return fabric.SaveFacts(ctx, v.store, facts) },
	}))
}

// removed fails the drill unless hosts have nothing of a tenant, and reach no host.
func (v *site) removed(key ib.PKey, when string, list ...string) {
	for _, h := range list {
		v.scene.Check(len(v.TenantKeys(v.SwitchPort(h, 1))) == 0, "%s, the switch port of %s, which was removed, holds %v", when, h, v.TenantKeys(v.SwitchPort(h, 1)))
		v.scene.Check(!v.delivered(h, "h1", key), "%s, %s, which was removed, reaches h1", when, h)
	}
}
