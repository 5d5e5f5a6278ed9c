package attestation

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"portcullis/api/attestation/session"
	"portcullis/api/audit"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/limit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/vault"
)

// Admission decides about hosts. Package admission implements it.
type Admission interface {
	// Settle makes the records of a host agree with the decision about it, after its Record changed in tx, and returns its
	// phase.
	Settle(ctx context.Context, tx *store.Tx, host string) (v1.Phase, error)
	// Look returns where a host stands as of r.
	Look(ctx context.Context, r store.Reader, host string) (*View, error)
}

// View is where a host stands.
type View struct {
	Now         time.Time
	Host        *inventory.Host
	Record      *hostrecord.Record
	Phase       v1.Phase // as decided
	Shown       *v1.Host // as operators see it
	Lacks       string   // why its evidence does not count, "" if it does
	Held        bool     // a conflict keeps it from being a member
	InPartition bool     // every port was read back with the P_Key of its cluster, and none was taken back since
}

// Judge decides what evidence has to meet. Services use that of admission. Drills inject others, to show what it prevents.
type Judge interface {
	// Review may change a verdict on evidence.
	Review(v *attest.Verdict)
	// Matters reports whether accepted evidence ends when it no longer meets policy for a reason.
	Matters(r attest.Reason) bool
	// NeedsReference reports whether accepted evidence must rest on reference values.
	NeedsReference() bool
}

// Options configure a Service. Store, Policy, Log, Admission, Refusals, Judge and Now are required.
type Options struct {
	Store     *store.Store
	Policy    *attest.Policy // for evidence
	Log       *slog.Logger
	Admission Admission
	Refusals  *tenancy.Refusals // of credentials that reach for another's object
	Judge     Judge

	Locks     Locks      // of adapters; nil: the service locks none
	Results   Results    // signs attestation results; nil: none are signed
	Certifier Certifier  // for keys of hosts; nil: hosts get no certificates
	Root      vault.Root // of the keys of sessions; nil: they are in memory

	Window      time.Duration // for which a refusal stands in a host's status
	EvidenceAge time.Duration // oldest evidence that leads to an admission
	// Withdraw are causes (attest.LapseCauses) for which a host that was admitted loses its memberships.
	Withdraw map[string]bool

	SourceRate  limit.Rate // of sessions asked for from one network address; default 20/s, 200 at once
	AttemptRate limit.Rate // of those that name one host; default one each 6 s, 10 at once
	HostRate    limit.Rate // of evidence of one host, whose TPM opened the credential; default 2/s, 60 at once
	AuditRate   limit.Rate // of entries of the audit log about refusals, over all hosts that proved the same; default AuditRate

	Now  func() time.Time // as records keep it
	Rand io.Reader        // default crypto/rand
}

// judging names what evidence is judged by, except for reference values: where it is equal, so is the outcome.
func (o *Options) judging() string {
	text, err := o.Policy.Judging()
	if err != nil || o.Policy.Check() != nil {
		return "" // judges no host; new evidence is refused
	}
	if o.Locks != nil {
		text += o.Locks.Version()
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Service verifies what hosts say. Methods are safe for concurrent use, and several Services may share one store. Refusals
// are *refusal.Error, except that evidence which is not accepted is an *attest.Refusal: its text is for the operator, the
// host must learn only that it was refused.
//
// A Service holds no state but its rate limits, and without Options.Root the keys of sessions.
type Service struct {
	o        Options
	judging  string // names what evidence is judged by
	sessions *session.Tokens
	sources  *limit.Limiter[netip.Addr]
	attempts *limit.Limiter[attempt]
	hosts    *limit.Limiter[string]
	boots    *limit.Limiter[string] // refused boots that are kept, by host
	tries    *limit.Limiter[string] // bodies of evidence that are read, by session
	notes    *limit.Limiter[noted]
	// strangerNotes limits what is noted of hosts that are not in inventory, in the same way,
	// so that neither timing nor records distinguish the two.
	strangerNotes *limit.Limiter[noted]
	allNotes      *limit.Limiter[hostrecord.Proven]
	lines         *limit.Limiter[hostrecord.Proven] // of the log, about refused attestations
	audits        *limit.Limiter[hostrecord.Proven] // of the audit log, the same

	accepted atomic.Uint64
	refused  [hostrecord.ProvenTPM + 1]atomic.Uint64
}

// New makes a Service.
func New(o Options) *Service {
	// Several hosts may sit behind one address, so sources get more than hosts.
	o.SourceRate = cmp.Or(o.SourceRate, limit.Rate{PerSecond: 20, Burst: 200})
	o.AttemptRate = cmp.Or(o.AttemptRate, limit.Rate{PerSecond: 1.0 / 6, Burst: 10})
	o.HostRate = cmp.Or(o.HostRate, limit.Rate{PerSecond: 2, Burst: 60})
	o.AuditRate = cmp.Or(o.AuditRate, AuditRate())
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	// The store takes one refusal of a kind a minute of those that any sender can cause. There is also a limit for all
	// senders who proved the same: a sender who proves less uses up nothing of others. All refusals are in the log.
	note, notes := limit.Rate{PerSecond: 1.0 / 60, Burst: 1}, limit.Rate{PerSecond: 2, Burst: 120}
	return &Service{
		o: o, judging: o.judging(),
		sessions: session.New(session.Options{Store: o.Store, Log: o.Log, Root: o.Root, Now: o.Now, Rand: o.Rand}),
		sources:  limit.New[netip.Addr](o.SourceRate), attempts: limit.New[attempt](o.AttemptRate), hosts: limit.New[string](o.HostRate),
		boots: limit.New[string](limit.Rate{PerSecond: 1.0 / 60, Burst: 3}), tries: limit.New[string](limit.Rate{PerSecond: 1.0 / 60, Burst: 4}),
		notes: limit.New[noted](note), strangerNotes: limit.New[noted](note), allNotes: limit.New[hostrecord.Proven](notes),
		lines: limit.New[hostrecord.Proven](limit.Rate{PerSecond: 1, Burst: 120}), audits: limit.New[hostrecord.Proven](o.AuditRate),
	}
}

// Accepted returns how often evidence or a seal was accepted since the start.
func (s *Service) Accepted() uint64 { return s.accepted.Load() }

// Refused returns how often evidence or a seal was refused since the start, of senders that had proven so much.
func (s *Service) Refused(proven hostrecord.Proven) uint64 { return s.refused[proven].Load() }

// now is the time as records keep it.
func (s *Service) now() time.Time { return s.o.Now() }

// known is a host, and what is on record of it.
type known struct {
	now  time.Time
	host inventory.Host
	rec  hostrecord.Record
}

// read reads a host. With a transaction what it reads becomes a condition of its commit.
func (s *Service) read(ctx context.Context, r store.Reader, id string) (*known, error) {
	host, _, err := inventory.Find(ctx, r, id)
	if err != nil {
		return nil, err
	}
	rec, err := store.Optional(hostrecord.Records().Get(ctx, r, id))
	if err != nil {
		return nil, err
	}
	return &known{now: s.now(), host: host, rec: rec}, nil
}

// log appends a change to the audit chain in the transaction that makes it.
func (s *Service) log(ctx context.Context, tx *store.Tx, c *audit.Change) error {
	return audit.Log(ctx, tx, s.now(), c)
}

// update runs one transaction and translates the store's errors.
func (s *Service) update(ctx context.Context, fn func(tx *store.Tx) error) error {
	_, err := s.o.Store.Update(ctx, fn)
	return refusal.Explain(err)
}
