// Package tenancy keeps tenants, their quotas, their clusters, and the P_Keys that clusters own. It also says what a credential with a
// scope may have to do with. It knows no HTTP and no Subnet Manager, and decides about no host: that is package admission.
//
// A P_Key is assigned to another cluster only when it was proven absent from every port that ever was to hold it.
package tenancy

import (
	"context"
	"log/slog"
	"time"

	"portcullis/api/audit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// Options configure a Service. All but PKeyReserved and Policy are required.
type Options struct {
	Store    *store.Store
	Log      *slog.Logger
	Refusals *Refusals

	PKeyFirst, PKeyLast ib.PKey       // range to allocate from
	PKeyReserved        []ib.PKey     // never allocated, besides the default partition
	PKeyMinAge          time.Duration // between proven absence and next use

	// Room refuses to have cluster use shared when the tables of a host of it have no room for one P_Key more.
	Room func(ctx context.Context, tx *store.Tx, cluster, shared *Cluster) error

	Now func() time.Time // as records keep it

	Policy Policy // default Strict
}

// Policy decides about clusters that are deleted. Services use Strict. Drills inject others, to show what it prevents.
type Policy interface {
	// Deletes reports whether a cluster with so many hosts may be deleted.
	Deletes(hosts int) bool
	// Quarantines reports whether the P_Key of a deleted cluster waits until it is proven absent everywhere.
	Quarantines() bool
}

// Strict is the policy of services.
type Strict struct{}

// Deletes implements Policy: only a cluster without hosts.
func (Strict) Deletes(hosts int) bool { return hosts == 0 }

// Quarantines implements Policy.
func (Strict) Quarantines() bool { return true }

// Service is what operators do with tenants and clusters. Methods are safe for concurrent use, and several Services may
// share one store. Refusals are *refusal.Error.
type Service struct{ o Options }

// New makes a Service.
func New(o Options) *Service {
	if o.Policy == nil {
		o.Policy = Strict{}
	}
	return &Service{o}
}

func (s *Service) now() time.Time { return s.o.Now() }

// log appends a change to the audit chain in the transaction that makes it.
func (s *Service) log(ctx context.Context, tx *store.Tx, c *audit.Change) error {
	return audit.Log(ctx, tx, s.now(), c)
}

// update runs one transaction and translates the store's errors.
func (s *Service) update(ctx context.Context, fn func(tx *store.Tx) error) error {
	_, err := s.o.Store.Update(ctx, fn)
	return refusal.Explain(err)
}
