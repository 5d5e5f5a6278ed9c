package admission

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/inventory/layout"
	"portcullis/api/inventory/register"
	"portcullis/api/inventory/signature"
	"portcullis/api/limit"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec/approval"
	"portcullis/fabricsm/vault"
)

// Options configure a Service. Store, Policy and Log are required; a zero
// duration or count means the default.
type Options struct {
	Store   *store.Store
	Policy  *attest.Policy // for evidence
	Log     *slog.Logger
	Locks   attestation.Locks   // of adapters; nil: the service locks none
	Results attestation.Results // signs attestation results; nil: none are signed

	// Declared returns how many external ports each switch of the declared topology has, 0 where that is not said, and nil
	// where none is declared; nil: there are no topologies.
	Declared func(ctx context.Context, r store.Reader) (map[ib.GUID]int, error)
	// Manifests are the keys that rack manifests are verified with; nil: none are taken.
	Manifests *signature.Set

	Certifier attestation.Certifier // for keys of hosts; nil: hosts get no certificates

	// Root seals the keys of sessions in the store. nil: they are in the memory of this Service alone, and a session that was
	// opened by another one, or before a restart, counts no more.
	Root vault.Root

	Clock Clock // whether Now is to be believed; nil: always

	Window      time.Duration // provisioning window when Assign names none; default 1 h
	EvidenceAge time.Duration // oldest evidence that leads to an admission; default 1 h

	// Withdraw are causes (attest.LapseCauses) for which a host that was admitted loses its memberships when its evidence
	// has such a lapse; others are only reported. nil: an EK on the deny list.
	Withdraw []string

	PKeyFirst, PKeyLast ib.PKey       // range to allocate from; default 0x0001 to 0x7ffe
	PKeyReserved        []ib.PKey     // never allocated, besides the default partition
	PKeyMinAge          time.Duration // between proven absence and next use; default 10 min, negative: none

	SourceRate  limit.Rate // of sessions asked for from one network address; default 20/s, 200 at once
	AttemptRate limit.Rate // of those that name one host; default one each 6 s, 10 at once
	HostRate    limit.Rate // of evidence of one host, whose TPM opened the credential, from all addresses; default 2/s, 60 at once
	AuditRate   limit.Rate // of entries of the audit log about refused attestations; default attestation.AuditRate

	// GUIDConflict decides about an admitted host when another one claims a GUID of it; default KeepAdmitted.
	GUIDConflict ConflictRule

	// Brake bounds how many hosts lose memberships by automatic causes.
	Brake BrakeLimits

	// UnseenFor is how long a host may be out of sight, with all its ports, before it loses its memberships. It gets them
	// back when its ports are seen where inventory has them. 0: without limit.
	UnseenFor time.Duration

	// Approval defines which operators may confirm another EK of a host.
	Approval approval.Rule

	Now  func() time.Time // default time.Now
	Rand io.Reader        // default crypto/rand

	Judge  Judge          // default Strict
	Tenant tenancy.Policy // default tenancy.Strict
}

// Clock says whether the time is to be believed. Package api/clock/keeper implements it.
type Clock interface {
	// Halted returns why nothing new may be granted now; nil: the clock is believed.
	Halted() error
	// Raise records the time in tx, so that it counts after a restart, too.
	Raise(ctx context.Context, tx *store.Tx) error
}

// ConflictRule decides about an admitted host when it is held.
type ConflictRule string

// Rules for conflicts. A host that is not admitted gets nothing under either.
const (
	// KeepAdmitted lets it stay a member where the fabric shows it at its place. An attacker whose host shows a neighbour's
	// GUID cannot cut the neighbour off.
	KeepAdmitted ConflictRule = "keep"
	// WithdrawAdmitted takes its memberships until the conflict is resolved: a GUID that two hosts prove to have belongs to
	// no host.
	WithdrawAdmitted ConflictRule = "withdraw"
)

// Valid reports a rule that there is.
func (r ConflictRule) Valid() bool { return r == KeepAdmitted || r == WithdrawAdmitted }

// Service is the API's work without its protocol. Methods are safe for concurrent use, and several Services may share one
// store. Refusals are *refusal.Error. Run keeps phases and grants up with what the fabric shows; one instance must run it.
type Service struct {
	o           Options
	withdraw    map[string]bool
	tenancy     *tenancy.Service
	refusals    *tenancy.Refusals // of credentials that reach for another's object
	inventory   *register.Service
	layout      *layout.Service
	attestation *attestation.Service
	evidence    Evidence // the same, as far as decisions about hosts need it
}

// New makes a Service.
func New(o Options) *Service {
	o.Window = cmp.Or(o.Window, time.Hour)
	o.EvidenceAge = cmp.Or(o.EvidenceAge, time.Hour)
	o.PKeyFirst = cmp.Or(o.PKeyFirst, 0x0001)
	o.PKeyLast = cmp.Or(o.PKeyLast, ib.DefaultPKeyLimited-1)
	o.PKeyMinAge = cmp.Or(o.PKeyMinAge, 10*time.Minute)
	o.Brake = o.Brake.withDefaults()
	o.GUIDConflict = cmp.Or(o.GUIDConflict, KeepAdmitted)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Judge == nil {
		o.Judge = Strict{}
	}
	if o.Withdraw == nil {
		o.Withdraw = []string{attest.LapseEK}
	}
	withdraw := map[string]bool{}
	for _, cause := range o.Withdraw {
		withdraw[cause] = true
	}
	s := &Service{o: o, withdraw: withdraw}
	s.refusals = tenancy.NewRefusals(o.Store, o.Log, s.now)
	s.tenancy = tenancy.New(tenancy.Options{
		Store: o.Store, Log: o.Log, Refusals: s.refusals, Room: s.roomFor, Now: s.now,
		PKeyFirst: o.PKeyFirst, PKeyLast: o.PKeyLast, PKeyReserved: o.PKeyReserved, PKeyMinAge: o.PKeyMinAge,
		Policy: o.Tenant,
	})
	s.attestation = attestation.New(attestation.Options{
		Store: o.Store, Policy: o.Policy, Log: o.Log, Admission: forAttestation{s}, Refusals: s.refusals, Judge: o.Judge,
		Locks: o.Locks, Results: o.Results, Certifier: o.Certifier, Root: o.Root,
		Window: o.Window, EvidenceAge: o.EvidenceAge, Withdraw: withdraw,
		SourceRate: o.SourceRate, AttemptRate: o.AttemptRate, HostRate: o.HostRate, AuditRate: o.AuditRate, Now: s.now, Rand: o.Rand,
	})
	s.evidence = s.attestation
	s.layout = layout.New(o.Store)
	s.inventory = register.New(register.Options{
		Store: o.Store, Log: o.Log, Admission: forInventory{s}, Declared: o.Declared, Manifests: o.Manifests, Approval: o.Approval, Now: s.now,
	})
	return s
}

// Attestation returns what verifies what hosts say.
func (s *Service) Attestation() *attestation.Service { return s.attestation }

// Inventory returns what keeps which hosts there are.
func (s *Service) Inventory() *register.Service { return s.inventory }

// Layout returns what shows where everything of the inventory is.
func (s *Service) Layout() *layout.Service { return s.layout }

// Tenancy returns what keeps the clusters that hosts are assigned to.
func (s *Service) Tenancy() *tenancy.Service { return s.tenancy }

// now is the time without monotonic clock, as records keep it.
func (s *Service) now() time.Time { return s.o.Now().UTC().Round(0) }
