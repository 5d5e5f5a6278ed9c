package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"portcullis/api/admission"
	"portcullis/api/audit"
	"portcullis/api/fabric"
	"portcullis/api/fabric/owed"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

const (
	// storePatience bounds how long the store may take to do as an operator on the
	// machine's socket orders; then it is done without it.
	storePatience = 3 * time.Second
	// settleEvery is how often the store is offered what it is owed, and settleTime bounds
	// one attempt.
	settleEvery = time.Second
	settleTime  = 30 * time.Second
)

// removals takes hosts off their clusters as operators order on the machine's socket, also
// while the store is away. It implements api.HostRemover.
type removals struct {
	admission *admission.Service
	owed      *owed.Keeper
	link      func() *fabric.Link // nil: not attached yet
	mark      func(context.Context, string, v1.HealthMark) (*v1.FabricHealth, error)
	acts      func() bool // this instance may write to the fabric now
	log       *slog.Logger
}

func (s *service) newRemovals() *removals {
	policy := s.parts.policy
	if policy == nil {
		policy = attest.DefaultPolicy() // without the api role; removals judge no evidence
	}
	return &removals{
		admission: admission.New(admission.Options{Store: s.store, Policy: policy, Log: s.log}),
		owed:      s.owed, link: s.link.Load, mark: s.marks.MarkHealth, acts: s.mayWrite, log: s.log,
	}
}

// Host implements api.HostRemover.
func (r *removals) Host(ctx context.Context, id string) (*v1.Host, error) {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	host, err := r.admission.Host(ctx, id)
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
func (r *removals) Release(ctx context.Context, actor, id string) (*v1.Host, error) {
	return r.release(ctx, actor, id, "")
}

func (r *removals) release(ctx context.Context, actor, id, reason string) (*v1.Host, error) {
	short, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	host, err := r.admission.Release(short, actor, id)
	if err == nil || !isAway(err) {
		return host, err
	}
	held, err := r.holding(id, err)
	if err != nil {
		return nil, err
	}
	if !admission.Matches(ctx, strconv.FormatInt(held.Epoch, 10)) {
		return nil, &admission.Error{
			Code: v1.CodeChanged, Status: admission.Changed,
			Detail: fmt.Sprintf("the store is away, and said last that assignment %d of host %s holds (0: none, or not known); nothing was done", held.Epoch, id),
			Hint:   "order it again, without --epoch",
		}
	}
	durable := r.owed.AddRemoval(owed.Removal{Host: id, Cluster: held.Cluster, Epoch: held.Epoch, Actor: actor, Time: time.Now().UTC(), Reason: reason})
	if l := r.link(); l != nil {
		l.Removed()
	}
	r.log.Warn("an operator takes a host off its cluster; the store is away, and records it later",
		"host", id, "cluster", held.Cluster, "actor", actor, "in_journal", durable, "in_force", r.acts())
	held.Removed = true
	return hostOf(&held, orderStands(durable, r.acts())), nil
}

// orderStands returns what an answer says of an order that the store does not have yet:
// whether it is in the journal, and whether this instance may write to the fabric, which one
// of several may not without the store.
func orderStands(durable, acts bool) string {
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
func (r *removals) Fence(ctx context.Context, actor, id string, f v1.Fence) (*v1.Host, error) {
	host, err := r.release(ctx, actor, id, "fence: "+f.Reason)
	if refused, ok := errors.AsType[*admission.Error](err); ok && refused.Code == "host_not_assigned" {
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
			_, err := r.mark(ctx, actor, v1.HealthMark{Place: p.Cabled.String(), Mark: v1.MarkUnhealthy, Reason: "fence: " + f.Reason})
			if err != nil {
				errs = append(errs, fmt.Errorf("port %v: %w", p.Cabled, err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &admission.Error{
			Code: "fence_incomplete", Status: admission.Unavailable, Err: err,
			Detail: fmt.Sprintf("host %s is taken off its cluster, and not all of its switch ports are marked: %v", id, err),
			Hint:   "portcullis sm status tells how the subnet manager is; then order it again",
		}
	}
	if r.owed.State().Fragile {
		for i := range host.Status.Guards {
			if g := &host.Status.Guards[i]; g.Name == v1.GuardRecorded {
				g.Detail = orderStands(false, r.acts()) // some of the marks at least
			}
		}
	}
	return host, nil
}

// holding returns what a host holds as the store said last; away is why it is not asked.
func (r *removals) holding(id string, away error) (fabric.Holding, error) {
	l := r.link()
	if l == nil {
		return fabric.Holding{}, away
	}
	held, known := l.Holding(id)
	if !known {
		return held, &admission.Error{
			Code: "host_unknown", Status: admission.NotFound, Err: away,
			Detail: fmt.Sprintf("host %s is not in inventory as the store said last, and has no grant", id),
			Hint:   "the store is away; see /readyz",
		}
	}
	return held, nil
}

// isAway reports an error that says nothing of what was asked, only that the store does not
// answer or does not take it.
func isAway(err error) bool {
	return errors.Is(err, store.ErrAway) || errors.Is(err, store.ErrFull) || errors.Is(err, context.DeadlineExceeded) ||
		admission.IsKind(err, admission.Unavailable)
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

// settleOwed offers the store what it is owed until ctx ends.
func (s *service) settleOwed(ctx context.Context) error {
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	told := ""
	for {
		err := s.settle(ctx)
		if ctx.Err() != nil {
			return nil
		}
		switch {
		case err == nil:
			told = ""
		case err.Error() != told && !errors.Is(err, store.ErrAway):
			told = err.Error()
			s.log.Error("the store does not take what it is owed; tried again", "error", err)
		}
		s.status.set("journal", owes(s.owed.State()))
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (s *service) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	return s.owed.Settle(ctx, s.store, owed.Carry{
		Removal: func(ctx context.Context, r owed.Removal) (int64, error) {
			return s.removals.admission.Record(ctx, admission.Ordered{Host: r.Host, Cluster: r.Cluster, Epoch: r.Epoch, Actor: r.Actor, Time: r.Time, Reason: r.Reason})
		},
		Facts: func(ctx context.Context, facts []sm.Fact) error { return fabric.SaveFacts(ctx, s.store, facts) },
	})
}

// owes says in words what the store is owed; "" if nothing.
func owes(st owed.State) string {
	if st.Since.IsZero() {
		return ""
	}
	where := "in the journal"
	if st.Fragile {
		where = "in memory alone"
	}
	return fmt.Sprintf("%d facts, %d removals and %d entries of the audit log wait %s for the store since %s",
		st.Facts, st.Removals, st.Notes, where, st.Since.UTC().Format(time.RFC3339))
}

// owedMetrics are the metrics of what the store is owed.
func owedMetrics(k *owed.Keeper) []prometheus.Collector {
	var all []prometheus.Collector
	for kind, count := range map[string]func(owed.State) int{
		"fact": func(s owed.State) int { return s.Facts }, "removal": func(s owed.State) int { return s.Removals }, "note": func(s owed.State) int { return s.Notes },
	} {
		all = append(all, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "portcullis_store_owed", Help: "What waits for the store since it was away.", ConstLabels: prometheus.Labels{"kind": kind},
		}, func() float64 { return float64(count(k.State())) }))
	}
	return all
}

// auditMarks puts marks into the audit log of a store. That a place is unhealthy takes
// effect without the store, which is told later; a mark that gives something back does not.
func auditMarks(st *store.Store, k *owed.Keeper) func(context.Context, string, ib.Place, *v1.HealthMark) error {
	return func(ctx context.Context, actor string, pl ib.Place, m *v1.HealthMark) error {
		ctx, cancel := context.WithTimeout(ctx, storePatience)
		defer cancel()
		e := audit.Entry{
			Time: time.Now(), Actor: actor, Action: "fabric.health", Object: "fabric/" + pl.String(), Code: m.Mark, Detail: m.Reason,
		}
		closes := m.Mark == v1.MarkUnhealthy && actor != ""
		if closes && k.State().Notes > 0 {
			k.AddNote(e) // after those that wait already; a host with many ports waits for the store once
			return nil
		}
		_, err := st.Update(ctx, func(tx *store.Tx) error { return audit.Append(ctx, tx, e) })
		switch {
		case err == nil:
			return nil
		case closes:
			k.AddNote(e) // the log says what becomes of it
			return nil
		default:
			return &admission.Error{
				Code: v1.CodeUnavailable, Status: admission.Unavailable, Err: err,
				Detail: "the audit log cannot be written, so nothing was changed", Hint: "look at /readyz, then ask again",
			}
		}
	}
}
