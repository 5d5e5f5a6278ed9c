package rma

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/rma"
)

// Confirm takes the step of a replacement that waits for a second person: the window
// that was drafted, the new device at its place, the hosts of a new switch. Each is a
// revision, approved by actor and put into force, if its guards allow it.
func (s *Service) Confirm(ctx context.Context, actor, ticket string, in v1.RMAConfirm) (*v1.RMA, error) {
	kept, err := s.get(ctx, ticket)
	if err != nil {
		return nil, err
	}
	st, err := s.look(ctx, &kept.Value)
	if err != nil {
		return nil, err
	}
	st.why = strings.TrimSpace(in.Reason)
	if st.resumed != "" {
		return s.goOn(ctx, actor, kept, st)
	}
	switch {
	case st.rec.state() == rma.Expired:
		return nil, refuse(refusal.Conflict, "rma_expired", "portcullis topospec rma cancel "+ticket+" ends it; then begin again", "the window of %s was open until %s", ticket, expiry(st.rec))
	case st.rec.state().Over():
		return nil, refuse(refusal.Conflict, "rma_over", "portcullis topospec rma show "+ticket, "%s is %v", ticket, st.rec.state())
	case !st.inForce:
		err = s.confirmWindow(ctx, actor, kept, st)
	case st.rec.Switch != nil:
		err = s.confirmSwitch(ctx, actor, kept, st)
	case st.missing != nil:
		err = st.missing
	default:
		err = s.confirmAdapter(ctx, actor, kept, st)
	}
	if err != nil {
		return nil, err
	}
	return s.Show(ctx, ticket)
}

// goOn writes down a step that was taken before the service ended, and what belongs to it.
func (s *Service) goOn(ctx context.Context, actor string, kept *store.Record[Record], st *stage) (*v1.RMA, error) {
	if err := s.confirmed(ctx, kept, st, actor, st.resumed, 0); err != nil {
		return nil, err
	}
	if w := st.rec.Switch; w != nil && w.State == rma.Replaced {
		again, err := s.get(ctx, w.Ticket)
		if err == nil {
			err = s.recable(ctx, actor, again, st)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.Show(ctx, st.rec.ticket())
}

func expiry(r *Record) string {
	at := r.Adapter
	if at == nil {
		return r.Switch.Expires.Format("2006-01-02 15:04:05Z07:00")
	}
	return at.Expires.Format("2006-01-02 15:04:05Z07:00")
}

// confirmWindow puts the place under maintenance.
func (s *Service) confirmWindow(ctx context.Context, actor string, kept *store.Record[Record], st *stage) error {
	if err := s.enforce(ctx, actor, st, st.rec.Window); err != nil {
		return err
	}
	return s.confirmed(ctx, kept, st, actor, "the window is open", st.rec.Window)
}

// confirmAdapter assigns the place to the new adapter.
func (s *Service) confirmAdapter(ctx context.Context, actor string, kept *store.Record[Record], st *stage) error {
	a := st.rec.Adapter
	number, err := s.draft(ctx, kept, st, &st.rec.Replace, func(active *topospec.Spec) (*topospec.Revision, error) {
		flow := *a
		return flow.Accept(active, actor, s.now())
	})
	if err != nil {
		return err
	}
	if err := s.enforce(ctx, actor, st, number); err != nil {
		return err
	}
	a.State = rma.Accepted
	s.o.Log.Warn("an adapter was replaced", "ticket", a.Ticket, "host", a.Host, "old", a.Old, "new", a.New, "opened_by", a.By, "actor", actor)
	return s.confirmed(ctx, kept, st, actor, fmt.Sprintf("%v has the place of %v, which is retired", a.New, a.Old), number)
}

// confirmSwitch assigns the place to the new switch, or lets its hosts in.
func (s *Service) confirmSwitch(ctx context.Context, actor string, kept *store.Record[Record], st *stage) error {
	w := st.rec.Switch
	if w.State == rma.Replaced && !st.rec.Recabled {
		return s.recable(ctx, actor, kept, st) // the service ended between the two
	}
	if st.missing != nil {
		return st.missing
	}
	if w.State == rma.Replaced {
		number, err := s.draft(ctx, kept, st, &st.rec.Open, func(active *topospec.Spec) (*topospec.Revision, error) {
			return s.opened(&stage{rec: st.rec, active: active})
		})
		if err == nil {
			err = s.enforce(ctx, actor, st, number)
		}
		if err != nil {
			return err
		}
		w.State = rma.Accepted
		return s.confirmed(ctx, kept, st, actor, "the hosts of the new switch are let in", number)
	}
	number, err := s.draft(ctx, kept, st, &st.rec.Replace, func(active *topospec.Spec) (*topospec.Revision, error) {
		flow := *w
		return flow.Replace(active, s.now())
	})
	if err == nil {
		err = s.enforce(ctx, actor, st, number)
	}
	if err != nil {
		return err
	}
	w.State = rma.Replaced
	s.o.Log.Warn("a switch was replaced", "ticket", w.Ticket, "old", w.Old, "new", w.New, "opened_by", w.By, "actor", actor)
	if err := s.confirmed(ctx, kept, st, actor, fmt.Sprintf("%v has the place of %v, which is retired; the ports of its hosts are off", w.New, w.Old), number); err != nil {
		return err
	}
	if kept, err = s.get(ctx, w.Ticket); err != nil {
		return err
	}
	return s.recable(ctx, actor, kept, st)
}

// recable has inventory know the new switch.
func (s *Service) recable(ctx context.Context, actor string, kept *store.Record[Record], st *stage) error {
	w := st.rec.Switch
	hosts, err := s.o.Hosts.MoveCables(ctx, actor, w.Old, w.New, source(w.Ticket))
	if err != nil {
		return err
	}
	st.rec.Recabled = true
	return s.taken(ctx, kept, st.rec, actor, "recable", fmt.Sprintf("inventory has %d hosts at the new switch", hosts), 0)
}

// draft returns the revision of a step: the one that was drafted for it before, if it is made from what is in force, or a
// new one. Its author is the operator who opened the window.
func (s *Service) draft(ctx context.Context, kept *store.Record[Record], st *stage, number *uint64, write func(*topospec.Spec) (*topospec.Revision, error)) (uint64, error) {
	if *number != 0 {
		rev, err := s.o.Revisions.Revision(ctx, *number)
		if err != nil {
			return 0, err
		}
		if rev.Status == "draft" && st.active != nil && rev.Parent == st.active.Digest().String() {
			return *number, nil
		}
	}
	rev, err := s.o.Revisions.DraftOf(ctx, st.rec.by(), source(st.rec.ticket()), st.rec.Reason, func(active *topospec.Spec) (*topospec.Revision, error) {
		if active == nil || st.active == nil || active.Digest() != st.active.Digest() {
			return nil, refuse(refusal.Conflict, "busy", "look at it again: portcullis topospec rma show "+st.rec.ticket(), "another operator changed what is in force meanwhile")
		}
		r, err := write(active)
		return r, explain(err)
	})
	if err != nil {
		return 0, err
	}
	// Which draft it is survives a refusal of its activation.
	*number = rev.Revision
	draft := kept.Value.clone()
	draft.Window, draft.Replace, draft.Open, draft.Close = st.rec.Window, st.rec.Replace, st.rec.Open, st.rec.Close
	draft.step(s.now(), st.rec.by(), "the next revision is drafted", rev.Revision)
	st.rec.Steps = slices.Clone(draft.Steps)
	if err := s.put(ctx, kept, draft, st.rec.by(), "draft"); err != nil {
		return 0, err
	}
	again, err := s.get(ctx, st.rec.ticket())
	if err != nil {
		return 0, err
	}
	*kept = *again
	return rev.Revision, nil
}

// enforce approves a revision as actor, and puts it into force in the mode in force. All guards of revisions hold; its
// author does not count as a second person.
func (s *Service) enforce(ctx context.Context, actor string, st *stage, number uint64) error {
	rev, err := s.o.Revisions.Revision(ctx, number)
	if err != nil {
		return err
	}
	if rev.Status == "active" {
		return nil // the service ended after it was put into force
	}
	if !slices.ContainsFunc(rev.Approvals, func(a v1.TopospecApproval) bool { return a.By == actor }) {
		if _, err := s.o.Revisions.Approve(ctx, actor, number, "", v1.TopospecApprove{Digest: rev.Digest, Reason: st.why}); err != nil {
			return err
		}
	}
	_, err = s.o.Revisions.Activate(ctx, actor, number, "", v1.TopospecActivate{Reason: source(st.rec.ticket()) + ": " + st.rec.Reason})
	return err
}

// confirmed records that an actor took the step that waited for a second person.
func (s *Service) confirmed(ctx context.Context, kept *store.Record[Record], st *stage, actor, what string, number uint64) error {
	if st.why != "" {
		what += ": " + st.why
	}
	return s.taken(ctx, kept, st.rec, actor, "confirm", what, number)
}

// taken writes down that a step was taken.
func (s *Service) taken(ctx context.Context, kept *store.Record[Record], rec *Record, actor, action, what string, number uint64) error {
	rec.step(s.now(), actor, what, number)
	return s.put(ctx, kept, rec, actor, action)
}

// Cancel ends a replacement before the new device has the place. If the place is under
// maintenance, the revision that ends it is drafted, for a second person.
func (s *Service) Cancel(ctx context.Context, actor, ticket string, in v1.RMACancel) (*v1.RMA, error) {
	why := strings.TrimSpace(in.Reason)
	if why == "" {
		return nil, refuse(refusal.Invalid, "reason_missing", "say it in a few words, for those who read it later", "no reason is given")
	}
	kept, err := s.get(ctx, ticket)
	if err != nil {
		return nil, err
	}
	st, err := s.look(ctx, &kept.Value)
	if err != nil {
		return nil, err
	}
	switch state := kept.Value.state(); state {
	case rma.Replaced:
		return nil, refuse(refusal.Conflict, "rma_replaced", "confirm it, or roll the topology back: portcullis topospec rollback", "the new switch has its place already")
	case rma.Accepted, rma.Cancelled:
		return nil, refuse(refusal.Conflict, "rma_over", "portcullis topospec rma show "+ticket, "%s is %v", ticket, state)
	default:
	}
	if err := s.dropDrafts(ctx, actor, st.rec, why); err != nil {
		return nil, err
	}
	number, err := s.closing(ctx, actor, st, why)
	if err != nil {
		return nil, err
	}
	st.rec.setState(rma.Cancelled)
	if err := s.taken(ctx, kept, st.rec, actor, "cancel", why, number); err != nil {
		return nil, err
	}
	s.o.Log.Warn("the replacement of a device is cancelled", "ticket", ticket, "actor", actor, "why", why)
	return s.Show(ctx, ticket)
}

// dropDrafts rejects what was drafted for a flow and is not in force.
func (s *Service) dropDrafts(ctx context.Context, actor string, rec *Record, why string) error {
	for _, number := range []uint64{rec.Window, rec.Replace, rec.Open} {
		status, err := s.status(ctx, number)
		if err != nil {
			return err
		}
		if status != "draft" {
			continue
		}
		if _, err := s.o.Revisions.Reject(ctx, actor, number, "", v1.TopospecReject{Reason: source(rec.ticket()) + " is cancelled: " + why}); err != nil {
			return err
		}
	}
	return nil
}

// closing drafts the revision that ends maintenance, if the place is under it; 0: it is
// not.
func (s *Service) closing(ctx context.Context, actor string, st *stage, why string) (uint64, error) {
	if st.active == nil || !underMaintenance(st.active, st.rec) {
		return 0, nil
	}
	rev, err := s.o.Revisions.DraftOf(ctx, actor, source(st.rec.ticket()), why, func(active *topospec.Spec) (*topospec.Revision, error) {
		if active == nil {
			return nil, refuse(refusal.Conflict, "busy", "look at it again", "nothing is in force any more")
		}
		flow := st.rec.clone()
		var r *topospec.Revision
		var err error
		if flow.Switch != nil {
			r, err = flow.Switch.Close(active)
		} else {
			r, err = flow.Adapter.Close(active)
		}
		return r, explain(err)
	})
	if err != nil {
		return 0, err
	}
	st.rec.Close = rev.Revision
	return rev.Revision, nil
}

// underMaintenance reports whether the place of a flow is under maintenance for it.
func underMaintenance(active *topospec.Spec, r *Record) bool {
	of := func(g ib.GUID) bool { return g == r.old() }
	return slices.ContainsFunc(active.Revision().Links, func(l topospec.Link) bool {
		return l.State == topospec.Maintenance && l.Reason == "RMA "+r.ticket() && (of(l.A.GUID) || of(l.B.GUID))
	})
}

func asError(err error) (*refusal.Error, bool) { return errors.AsType[*refusal.Error](err) }
