package admission

import (
	"cmp"
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"portcullis/api/limit"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/vault"
)

// Options configure a Service. Store, Policy and Log are required; a zero
// duration or count means the default.
type Options struct {
	Store   *store.Store
	Policy  *attest.Policy // for evidence
	Log     *slog.Logger
	Locks   Locks   // of adapters; nil: the service locks none
	Results Results // signs attestation results; nil: none are signed

	// Declared returns how many external ports each switch of the declared topology has, 0 where that is not said, and nil
	// where none is declared; nil: there are no topologies.
	Declared func(ctx context.Context, r store.Reader) (map[ib.GUID]int, error)

	Certifier Certifier // for keys of hosts; nil: hosts get no certificates

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

	// GUIDConflict decides about an admitted host when another one claims a GUID of it; default KeepAdmitted.
	GUIDConflict ConflictRule

	// Brake bounds how many hosts lose memberships by automatic causes.
	Brake BrakeLimits

	// UnseenFor is how long a host may be out of sight, with all its ports, before it loses its memberships. It gets them
	// back when its ports are seen where inventory has them. 0: without limit.
	UnseenFor time.Duration

	// Alone lets the operator who staged another EK of a host confirm it, too.
	Alone bool

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
// store. Refusals are *refusal.Error, except that evidence which is not accepted is an *attest.Refusal: its text is for the
// operator, the host must learn only that it was refused.
//
// A Service holds no state but its rate limits, and without Options.Root the keys of sessions. Run keeps phases and grants
// up with what the fabric shows; one instance must run it.
type Service struct {
	o        Options
	judging  string // names what evidence is judged by
	withdraw map[string]bool
	tenancy  *tenancy.Service
	refusals *tenancy.Refusals // of credentials that reach for another's object
	sources  *limit.Limiter[netip.Addr]
	attempts *limit.Limiter[attempt]
	hosts    *limit.Limiter[string]
	sessions sessionRing            // keys that are open
	boots    *limit.Limiter[string] // refused boots that are kept, by host
	tries    *limit.Limiter[string] // bodies of evidence that are read, by session
	notes    *limit.Limiter[noted]
	// strangerNotes limits what is noted of hosts that are not in inventory, in the same way,
	// so that neither timing nor records distinguish the two.
	strangerNotes *limit.Limiter[noted]
	allNotes      *limit.Limiter[proof]
	lines         *limit.Limiter[proof] // of the log, about refused attestations
}

// New makes a Service.
func New(o Options) *Service {
	o.Window = cmp.Or(o.Window, time.Hour)
	o.EvidenceAge = cmp.Or(o.EvidenceAge, time.Hour)
	o.PKeyFirst = cmp.Or(o.PKeyFirst, 0x0001)
	o.PKeyLast = cmp.Or(o.PKeyLast, ib.DefaultPKeyLimited-1)
	o.PKeyMinAge = cmp.Or(o.PKeyMinAge, 10*time.Minute)
	// Several hosts may sit behind one address, so sources get more than hosts.
	o.SourceRate = cmp.Or(o.SourceRate, limit.Rate{PerSecond: 20, Burst: 200})
	o.AttemptRate = cmp.Or(o.AttemptRate, limit.Rate{PerSecond: 1.0 / 6, Burst: 10})
	o.HostRate = cmp.Or(o.HostRate, limit.Rate{PerSecond: 2, Burst: 60})
	o.Brake = o.Brake.withDefaults()
	o.GUIDConflict = cmp.Or(o.GUIDConflict, KeepAdmitted)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Judge == nil {
		o.Judge = Strict{}
	}
	// The store takes one refusal of a kind a minute of those that any sender can cause. There is also a limit for all
	// senders who proved the same: a sender who proves less uses up nothing of others. All refusals are in the log.
	note, notes := limit.Rate{PerSecond: 1.0 / 60, Burst: 1}, limit.Rate{PerSecond: 2, Burst: 120}
	if o.Withdraw == nil {
		o.Withdraw = []string{attest.LapseEK}
	}
	withdraw := map[string]bool{}
	for _, cause := range o.Withdraw {
		withdraw[cause] = true
	}
	s := &Service{
		o: o, judging: o.judging(), withdraw: withdraw, sources: limit.New[netip.Addr](o.SourceRate), attempts: limit.New[attempt](o.AttemptRate),
		hosts: limit.New[string](o.HostRate), boots: limit.New[string](limit.Rate{PerSecond: 1.0 / 60, Burst: 3}), tries: limit.New[string](limit.Rate{PerSecond: 1.0 / 60, Burst: 4}), notes: limit.New[noted](note), strangerNotes: limit.New[noted](note), allNotes: limit.New[proof](notes),
		lines: limit.New[proof](limit.Rate{PerSecond: 1, Burst: 120}),
	}
	s.refusals = tenancy.NewRefusals(o.Store, o.Log, s.now)
	s.tenancy = tenancy.New(tenancy.Options{
		Store: o.Store, Log: o.Log, Refusals: s.refusals, Room: s.roomFor, Now: s.now,
		PKeyFirst: o.PKeyFirst, PKeyLast: o.PKeyLast, PKeyReserved: o.PKeyReserved, PKeyMinAge: o.PKeyMinAge,
		Policy: o.Tenant,
	})
	return s
}

// Tenancy returns what keeps the clusters that hosts are assigned to.
func (s *Service) Tenancy() *tenancy.Service { return s.tenancy }

// now is the time without monotonic clock, as records keep it.
func (s *Service) now() time.Time { return s.o.Now().UTC().Round(0) }
