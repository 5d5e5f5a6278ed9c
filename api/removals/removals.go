// Package removals takes hosts off their clusters as operators order on the machine of the
// service, also while the store is away: the order is in force at once, goes to the journal of
// what the store is owed, and is recorded later.
package removals

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"portcullis/api/admission"
	"portcullis/api/fabric"
	"portcullis/api/fabric/owed"
	"portcullis/api/ifmatch"
	"portcullis/api/reason"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// Patience bounds how long the store may take to do as is ordered; then it is done without
// it.
const Patience = 3 * time.Second

// Options are what a Remover is made of. All but Now and NeedsStore are required.
type Options struct {
	Admission *admission.Service
	Owed      *owed.Keeper
	Link      func() *fabric.Link // that is attached now; it returns nil without one
	Mark      func(context.Context, string, v1.HealthMark) (*v1.FabricHealth, error)
	Acts      func() bool // this instance may write to the fabric now
	Log       *slog.Logger
	Now       func() time.Time // default time.Now
	// NeedsStore refuses what the store does not do: for drills alone, which show what the
	// journal is for.
	NeedsStore bool
}

// Remover takes hosts off their clusters. It implements api.HostRemover.
type Remover struct{ o Options }

// New makes a Remover.
func New(o Options) *Remover {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Remover{o}
}

// Host implements api.HostRemover.
func (r *Remover) Host(ctx context.Context, id string) (*v1.Host, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	host, err := r.o.Admission.Host(ctx, id)
	if err == nil || !isAway(err) {
		return host, err
	}
	held, err := r.holding(id, err)
	if err != nil {
		return nil, err
	}
	return hostOf(&held, "the store is away: this is what it said last"), nil
}

// Release implements api.HostRemover.
func (r *Remover) Release(ctx context.Context, actor, id string) (*v1.Host, error) {
	return r.release(ctx, actor, id, reason.Of(ctx))
}

func (r *Remover) release(ctx context.Context, actor, id, why string) (*v1.Host, error) {
	short, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	host, err := r.o.Admission.Release(short, actor, id)
	if err == nil || !isAway(err) || r.o.NeedsStore {
		return host, err
	}
	held, err := r.holding(id, err)
	if err != nil {
		return nil, err
	}
	if !ifmatch.Matches(ctx, strconv.FormatInt(held.Epoch, 10)) {
		return nil, &refusal.Error{
			Code: v1.CodeChanged, Status: refusal.Changed,
			Detail: fmt.Sprintf("the store is away, and said last that assignment %d of host %s holds (0: none, or not known); nothing was done", held.Epoch, id),
			Hint:   "order it again, without --epoch",
		}
	}
	durable := r.o.Owed.AddRemoval(owed.Removal{Host: id, Cluster: held.Cluster, Epoch: held.Epoch, Actor: actor, Time: r.o.Now().UTC(), Reason: why})
	if l := r.o.Link(); l != nil {
		l.Removed()
	}
	r.o.Log.Warn("an operator takes a host off its cluster; the store is away, and records it later",
		"host", id, "cluster", held.Cluster, "actor", actor, "in_journal", durable, "in_force", r.o.Acts())
	held.Removed = true
	return hostOf(&held, stands(durable, r.o.Acts())), nil
}

// stands returns what an answer says of an order that the store does not have yet:
// whether it is in the journal, and whether this instance may write to the fabric, which one
// of several may not without the store.
func stands(durable, acts bool) string {
	effect, later := "is carried out in the fabric", "is recorded when the store is back"
	if !acts {
		effect, later = "waits, since this instance may not write to the fabric without the store", "is carried out and recorded when the store is back"
	}
	if durable {
		return fmt.Sprintf("the store is away: the order %s; it is in the journal of this machine, and %s", effect, later)
	}
	return fmt.Sprintf("the store is away and the journal cannot be written: the order %s; it is in the memory of this process alone: order it again if the process ends before the store is back", effect)
}

// Fence implements api.HostRemover.
func (r *Remover) Fence(ctx context.Context, actor, id string, f v1.Fence) (*v1.Host, error) {
	host, err := r.release(ctx, actor, id, "fence: "+f.Reason)
	if refused, ok := errors.AsType[*refusal.Error](err); ok && refused.Code == "host_not_assigned" {
		host, err = r.Host(ctx, id) // nothing to release; its ports are closed all the same
	}
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, hca := range host.HCAs {
		for _, p := range hca.Ports {
			if p.Cabled.IsZero() {
				continue
			}
			_, err := r.o.Mark(ctx, actor, v1.HealthMark{Place: p.Cabled.String(), Mark: v1.MarkUnhealthy, Reason: "fence: " + f.Reason})
			if err != nil {
				errs = append(errs, fmt.Errorf("port %v: %w", p.Cabled, err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &refusal.Error{
			Code: "fence_incomplete", Status: refusal.Unavailable, Err: err,
			Detail: fmt.Sprintf("host %s is taken off its cluster, and not all of its switch ports are marked: %v", id, err),
			Hint:   "portcullis sm status shows how the subnet manager is; then order it again",
		}
	}
	if r.o.Owed.State().Fragile {
		for i := range host.Status.Guards {
			if g := &host.Status.Guards[i]; g.Name == v1.GuardRecorded {
				g.Detail = stands(false, r.o.Acts()) // some of the marks at least
			}
		}
	}
	return host, nil
}

// holding returns what a host holds as the store said last; away is why it is not asked.
func (r *Remover) holding(id string, away error) (fabric.Holding, error) {
	l := r.o.Link()
	if l == nil {
		return fabric.Holding{}, away
	}
	held, known := l.Holding(id)
	if !known {
		return held, &refusal.Error{
			Code: "host_unknown", Status: refusal.NotFound, Err: away,
			Detail: fmt.Sprintf("host %s is not in inventory as the store said last, and has no grant", id),
			Hint:   "the store is away; see /readyz",
		}
	}
	return held, nil
}

// isAway reports whether an error says nothing of the request, only that the store does not answer or does not take it.
func isAway(err error) bool {
	return errors.Is(err, store.ErrAway) || errors.Is(err, store.ErrFull) || errors.Is(err, context.DeadlineExceeded) ||
		refusal.IsKind(err, refusal.Unavailable)
}

// hostOf shows what is known of a host without the store.
func hostOf(h *fabric.Holding, detail string) *v1.Host {
	out := &v1.Host{ID: h.Host, Cluster: h.Cluster, Tenant: h.Tenant, Epoch: h.Epoch, HCAs: []v1.HCA{}}
	for _, a := range h.HCAs {
		hca := v1.HCA{NodeGUID: a.NodeGUID, Ports: []v1.HCAPort{}}
		for _, p := range a.Ports {
			hca.Ports = append(hca.Ports, v1.HCAPort{Num: p.Num, GUID: p.GUID, Cabled: p.Cable})
		}
		out.HCAs = append(out.HCAs, hca)
	}
	out.Status.Phase = v1.PhaseQuarantined
	for _, g := range h.Grants {
		out.Status.Phase = v1.PhaseAdmitted
		if g.PKey.IsFull() {
			out.Status.PKey = g.PKey.Base()
		}
	}
	if h.Removed {
		out.Status.Phase, out.Cluster, out.Tenant = v1.PhaseReleasing, "", ""
	}
	out.Status.Guards = []v1.Guard{{Name: v1.GuardRecorded, Detail: detail}}
	return out
}
