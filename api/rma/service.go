package rma

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/inventory/register"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/topology"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/rma"
)

// Revisions is what keeps the revisions of the declared topology. Package topology
// implements it.
type Revisions interface {
	Wanted(ctx context.Context) (topology.Wanted, error)
	Revision(ctx context.Context, number uint64) (*v1.TopospecRevision, error)
	DraftOf(ctx context.Context, author, source, why string, write func(active *topospec.Spec) (*topospec.Revision, error)) (*v1.TopospecRevision, error)
	Approve(ctx context.Context, actor string, number uint64, match string, in v1.TopospecApprove) (*v1.TopospecRevision, error)
	Reject(ctx context.Context, actor string, number uint64, match string, in v1.TopospecReject) (*v1.TopospecRevision, error)
	Activate(ctx context.Context, actor string, number uint64, match string, in v1.TopospecActivate) (*v1.Topospec, error)
}

// Proofs knows what hosts have shown. Package attestation implements it.
type Proofs interface {
	// Evidence returns the last proof of the host, if that still counts; the zero Evidence if there is none.
	Evidence(ctx context.Context, host string) (attestation.Proof, error)
}

// Hosts keeps inventory. Package register implements it.
type Hosts interface {
	// MoveCables changes inventory so that the cables at one switch are at another, and returns the number of hosts
	// concerned.
	MoveCables(ctx context.Context, actor string, from, to ib.GUID, why string) (hosts int, err error)
}

// Options configure a Service. Store, Log, Revisions, Proofs and Hosts are required.
type Options struct {
	Store     *store.Store
	Log       *slog.Logger
	Revisions Revisions
	Proofs    Proofs
	Hosts     Hosts
	// Look returns the fabric as it is seen; nil: another process has the Subnet Manager.
	Look func() (*topology.Sight, error)
	Now  func() time.Time // time.Now when nil
}

// Service replaces devices. Methods are safe for concurrent use. Refusals are
// *refusal.Error.
type Service struct{ o Options }

// New makes a Service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{o: o}
}

func (s *Service) now() time.Time { return s.o.Now().UTC().Round(0) }

// Start opens a replacement: it drafts the revision that puts the place under maintenance. Nothing is in force before a
// second person confirms it.
func (s *Service) Start(ctx context.Context, actor string, in v1.NewRMA) (*v1.RMA, error) {
	in.Reason = strings.TrimSpace(in.Reason)
	switch {
	case register.CheckTicket(in.Ticket) != nil:
		return nil, register.CheckTicket(in.Ticket)
	case in.Reason == "":
		return nil, refuse(refusal.Invalid, "reason_missing", "say it in a few words, for those who confirm", "no reason is given for the replacement")
	case in.Kind == v1.RMASwitch && in.New == 0:
		return nil, refuse(refusal.Invalid, "new_missing", "name the spare switch that takes its place", "no new switch is named")
	}
	if err := s.free(ctx, in.Ticket, in.Old); err != nil {
		return nil, err
	}
	rec := &Record{Reason: in.Reason}
	draft, err := s.o.Revisions.DraftOf(ctx, actor, source(in.Ticket), in.Reason, func(active *topospec.Spec) (*topospec.Revision, error) {
		if active == nil {
			return nil, refuse(refusal.Conflict, "no_topology", "draft and activate one: portcullis topospec draft", "no revision of the declared topology is in force")
		}
		r, err := rec.open(active, &in, actor, s.now())
		return r, explain(err)
	})
	if err != nil {
		return nil, err
	}
	rec.Window = draft.Revision
	rec.step(s.now(), actor, "opened: "+in.Reason, draft.Revision)
	if err := s.put(ctx, nil, rec, actor, "start"); err != nil {
		return nil, err
	}
	s.o.Log.Warn("the replacement of a device begins", "ticket", in.Ticket, "kind", in.Kind, "old", in.Old, "actor", actor, "why", in.Reason)
	return s.Show(ctx, in.Ticket)
}

func source(ticket string) string { return "rma " + ticket }

// open begins the flow, and returns the revision of its window.
func (r *Record) open(active *topospec.Spec, in *v1.NewRMA, actor string, now time.Time) (next *topospec.Revision, err error) {
	window := time.Duration(in.Window * float64(time.Second))
	if in.Kind == v1.RMASwitch {
		r.Switch, next, err = rma.OpenSwitch(active, in.Old, in.New, in.AggregationNode, in.Ticket, actor, now, window)
		return next, err
	}
	r.Adapter, next, err = rma.OpenAdapter(active, in.Old, in.Ticket, actor, now, window)
	return next, err
}

func (r *Record) step(at time.Time, by, what string, revision uint64) {
	r.Steps = append(r.Steps, Step{At: at, By: by, What: what, Revision: revision})
}

// free refuses a ticket that is taken, and a device that is being replaced.
func (s *Service) free(ctx context.Context, ticket string, old ib.GUID) error {
	recs, err := s.records(ctx)
	if err != nil {
		return err
	}
	for i := range recs {
		r := &recs[i]
		if r.ticket() == ticket {
			return refuse(refusal.Conflict, "ticket_taken", "portcullis topospec rma show "+ticket, "ticket %s is that of another replacement", ticket)
		}
		if r.old() == old && !r.state().Over() {
			return refuse(refusal.Conflict, "rma_open", "portcullis topospec rma show "+r.ticket(), "%v is being replaced by ticket %s", old, r.ticket())
		}
	}
	return nil
}

func (s *Service) records(ctx context.Context) ([]Record, error) {
	list, _, err := Records().List(ctx, s.o.Store, "")
	if err != nil {
		return nil, explain(err)
	}
	out := make([]Record, 0, len(list))
	for i := range list {
		out = append(out, list[i].Value)
	}
	return out, nil
}

// get reads a record, and what it was modified at.
func (s *Service) get(ctx context.Context, ticket string) (*store.Record[Record], error) {
	if register.CheckTicket(ticket) != nil {
		return nil, unknown(ticket)
	}
	rec, err := Records().Get(ctx, s.o.Store, ticket)
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknown(ticket)
	}
	if err != nil {
		return nil, explain(err)
	}
	return &rec, nil
}

// put writes a record that was was before, with its entry in the audit log. A record that another writer changed meanwhile
// is not written.
func (s *Service) put(ctx context.Context, was *store.Record[Record], rec *Record, actor, action string) error {
	_, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
		now, err := Records().Get(ctx, tx, rec.ticket())
		switch {
		case was == nil && err == nil, was != nil && now.Modified != was.Modified:
			return refuse(refusal.Conflict, "busy", "look at it again: portcullis topospec rma show "+rec.ticket(), "another operator took a step of %s meanwhile", rec.ticket())
		case err != nil && !errors.Is(err, store.ErrNotFound):
			return err
		}
		if was == nil {
			if err := s.makeRoom(ctx, tx); err != nil {
				return err
			}
		}
		last := rec.Steps[len(rec.Steps)-1]
		before, err := digest(was)
		if err != nil {
			return err
		}
		after, err := audit.Digest(rec)
		if err != nil {
			return err
		}
		return errors.Join(
			Records().Put(tx, rec.ticket(), *rec),
			audit.Append(ctx, tx, audit.Entry{
				Time: s.now(), Actor: actor, Action: "topospec.rma." + action, Object: "rma/" + rec.ticket(), Code: rec.state().String(),
				Detail: last.What, Before: before, After: after,
			}),
		)
	})
	return explain(err)
}

func digest(was *store.Record[Record]) (string, error) {
	if was == nil {
		return "", nil
	}
	return audit.Digest(was.Value)
}

// makeRoom forgets the oldest flows that are over, except for the audit log.
func (s *Service) makeRoom(ctx context.Context, tx *store.Tx) error {
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return err
	}
	list, _, err := Records().List(ctx, snap, "")
	if err != nil || len(list) < maxRecords {
		return err
	}
	slices.SortFunc(list, func(a, b store.Record[Record]) int { return cmp.Compare(a.Modified, b.Modified) })
	for i := range list {
		if list[i].Value.state().Over() {
			Records().Delete(tx, list[i].Key)
			return nil
		}
	}
	return refuse(refusal.Conflict, "rma_full", "cancel those that no operator goes on with: portcullis topospec rma list", "%d replacements are open", len(list))
}

func unknown(ticket string) error {
	return refuse(refusal.NotFound, "rma_unknown", "portcullis topospec rma list", "no replacement has the ticket %.80q", ticket)
}

func refuse(k refusal.Kind, code, hint, format string, args ...any) error {
	return &refusal.Error{Code: code, Status: k, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

// explain turns errors of flows and of the store into refusals.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if _, ours := errors.AsType[*refusal.Error](err); ours {
		return err
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	switch {
	case errors.Is(err, rma.ErrRefused):
		return &refusal.Error{Code: "rma_refused", Status: refusal.Conflict, Detail: text, Hint: "portcullis topospec rma list shows what is open", Err: err}
	default:
		return refusal.Unconfirmed(err, "portcullis topospec rma list shows whether it was done; then try again")
	}
}
