package adoptions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"portcullis/api/admission"
	"portcullis/api/adoption"
	"portcullis/api/audit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec/approval"
)

// PKeys says which P_Keys clusters may get. Package tenancy implements it.
type PKeys interface {
	AdoptPKey(ctx context.Context, tx *store.Tx, k ib.PKey) error
	FreePKey(ctx context.Context, tx *store.Tx, k ib.PKey) error
}

// Brake stops what deadlines would take from many hosts. Package admission implements it.
type Brake interface {
	MayLose(ctx context.Context, tx *store.Tx, l admission.Losing) (bool, error)
	LosesNothing(ctx context.Context, tx *store.Tx, class, host string) error
}

// Clock says whether the time is to be believed.
type Clock interface {
	// Halted returns why nothing new may be granted now; nil: the clock is believed.
	Halted() error
}

// Options configure a Service. All but Clock and Reserved are required.
type Options struct {
	Store    *store.Store
	Log      *slog.Logger
	PKeys    PKeys
	Brake    Brake
	Approval approval.Rule // who may confirm
	Reserved []ib.PKey     // that no tenant gets
	Now      func() time.Time
	Clock    Clock // nil: always believed
}

// Service keeps adoptions. Methods are safe for concurrent use, and several Services may share one store. Refusals are
// *refusal.Error. One instance must run Run.
type Service struct{ o Options }

// New returns a Service.
func New(o Options) *Service { return &Service{o} }

// service is the actor of changes that no caller requested.
const service = "service"

const (
	maxOpen     = 64 // adoptions that are not over
	maxKept     = 1000
	leastDigest = 12
	codeOpen    = "adoptions_open"
	idPrefix    = "adoption-"
)

func (s *Service) now() time.Time { return s.o.Now().UTC().Round(0) }

func (s *Service) halted() error {
	if s.o.Clock == nil {
		return nil
	}
	return s.o.Clock.Halted()
}

// update runs one transaction and translates the store's errors.
func (s *Service) update(ctx context.Context, fn func(tx *store.Tx) error) error {
	_, err := s.o.Store.Update(ctx, fn)
	return refusal.Explain(err)
}

func (s *Service) log(ctx context.Context, tx *store.Tx, c *audit.Change) error {
	return audit.Log(ctx, tx, s.now(), c)
}

// get reads an adoption.
func get(ctx context.Context, r store.Reader, id string) (Record, error) {
	unknown := refusal.New(refusal.NotFound, "adoption_unknown", "portcullis adopt list", "no adoption %q", refusal.Clip(id))
	if n, err := strconv.Atoi(strings.TrimPrefix(id, idPrefix)); err != nil || n < 1 || id != idOf(n) {
		return Record{}, unknown
	}
	rec, err := Records().Get(ctx, r, id)
	if errors.Is(err, store.ErrNotFound) {
		return Record{}, unknown
	}
	return rec.Value, err
}

func idOf(n int) string { return fmt.Sprintf("%s%04d", idPrefix, n) }

// nextID returns the id of the next adoption, and refuses one too many. Reading all of them makes two that start at once
// conflict.
func nextID(ctx context.Context, tx *store.Tx) (string, error) {
	all, _, err := Records().List(ctx, tx, "")
	if err != nil {
		return "", err
	}
	last, open := 0, 0
	for i := range all {
		if n, err := strconv.Atoi(strings.TrimPrefix(all[i].Key, idPrefix)); err == nil {
			last = max(last, n)
		}
		if all[i].Value.State != v1.AdoptionOver {
			open++
		}
	}
	switch {
	case open >= maxOpen:
		return "", refusal.New(refusal.Conflict, codeOpen, "end some: portcullis adopt list", "%d adoptions are not over", open)
	case len(all) >= maxKept:
		for i := range all {
			if all[i].Value.State == v1.AdoptionOver {
				Records().Delete(tx, all[i].Key)
				break
			}
		}
	}
	return idOf(last + 1), nil
}

func (r *Record) view(id string) v1.Adoption {
	return v1.Adoption{
		ID: id, State: r.State, Reason: r.Reason, By: r.By, Staged: r.Staged, ConfirmedBy: r.ConfirmedBy, Confirmed: r.Confirmed,
		Deadline: r.Deadline, Ended: r.Ended, Memberships: r.Memberships, Digest: r.Digest,
	}
}

// reasonOf returns a reason, and refuses none.
func reasonOf(text string) (string, error) {
	why := strings.TrimSpace(text)
	if why == "" {
		return "", refusal.New(refusal.Invalid, "reason_missing", "say why, for the audit log", "no reason given")
	}
	return refusal.ClipTo(why, 512), nil
}

// confirmed refuses a number that is not how many memberships there are.
func confirmed(n, said int) error {
	if n != said {
		return refusal.New(refusal.Conflict, "not_confirmed", fmt.Sprintf("look at them, then confirm the number: --confirm %d", n),
			"%d memberships are concerned, and %d were confirmed", n, said)
	}
	return nil
}

func portsOf(in []v1.AdoptedPort) []adoption.Port {
	out := make([]adoption.Port, 0, len(in))
	for _, p := range in {
		out = append(out, adoption.Port{GUID: p.GUID, Place: p.Place, PKeys: p.PKeys, Device: refusal.Clip(p.Device)})
	}
	return out
}
