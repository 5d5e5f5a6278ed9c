package register

import (
	"context"
	"log/slog"
	"time"

	"portcullis/api/audit"
	"portcullis/api/inventory/signature"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec/approval"
)

// Admission decides about hosts. Package admission implements it.
type Admission interface {
	// Void makes a host attest again, and settles it.
	Void(ctx context.Context, tx *store.Tx, host string) error
	// Forget voids all that a host showed with another TPM, closes its window, and settles it.
	Forget(ctx context.Context, tx *store.Tx, host string) error
	// Settle makes the records of a host agree with the decision about it, after its inventory changed in tx.
	Settle(ctx context.Context, tx *store.Tx, host string) error
}

// Options configure a Service. All but Declared, Manifests and Approval are required.
type Options struct {
	Store     *store.Store
	Log       *slog.Logger
	Admission Admission
	// Declared returns how many external ports each switch of the declared topology has, 0 where that is not said, and nil
	// where none is declared; nil: there are no topologies.
	Declared  func(ctx context.Context, r store.Reader) (map[ib.GUID]int, error)
	Manifests *signature.Set   // keys that rack manifests are verified with; nil: none are taken
	Approval  approval.Rule    // which operators may confirm another EK of a host
	Now       func() time.Time // as records keep it
}

// Service keeps inventory. Methods are safe for concurrent use, and several Services may share one store. Refusals are
// *refusal.Error.
type Service struct{ o Options }

// New makes a Service.
func New(o Options) *Service { return &Service{o} }

func (s *Service) now() time.Time { return s.o.Now() }

// maxDetail bounds what is kept of a reason.
const maxDetail = 512

// log appends a change to the audit chain in the transaction that makes it.
func (s *Service) log(ctx context.Context, tx *store.Tx, c *audit.Change) error {
	return audit.Log(ctx, tx, s.now(), c)
}

// update runs one transaction and translates the store's errors.
func (s *Service) update(ctx context.Context, fn func(tx *store.Tx) error) error {
	_, err := s.o.Store.Update(ctx, fn)
	return refusal.Explain(err)
}
