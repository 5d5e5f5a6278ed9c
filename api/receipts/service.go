package receipts

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"portcullis/api/audit"
	"portcullis/api/isolation"
	"portcullis/api/keyring"
	"portcullis/api/limit"
	"portcullis/api/receipt"
	"portcullis/api/receipt/translog"
	"portcullis/api/receiptlog"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/attest/result"
	"portcullis/fabricsm/vault"
)

const (
	// MaxAge is the longest that a receipt counts, and DefaultAge how long it counts where the request names no time.
	MaxAge     = 31 * 24 * time.Hour
	DefaultAge = 24 * time.Hour
	// minAge is the shortest.
	minAge = time.Minute

	// publishAhead is how long a key is published before it signs, so that those who keep a copy renew it in time.
	publishAhead = 7 * 24 * time.Hour
	// publishAfter is how long a key is published after the next one signs: the life of its last receipt.
	publishAfter = MaxAge + 24*time.Hour
)

// Examined is what one reading of the fabric showed about tenants.
type Examined struct {
	Detail *isolation.Detail
	// Records is when the records were as Detail has them.
	Records  time.Time
	Topology receipt.Topology // without a bound
	Epochs   []receipt.Epoch
}

// Examiner reads the fabric. Errors are those of api.IsolationProver.
type Examiner interface {
	// Examine returns what was found. A reading that is shared may have been made for another request, not long ago.
	Examine(ctx context.Context, q v1.IsolationQuery, shared bool) (*Examined, error)
}

// Appraiser says how hosts are judged now, by what is recorded. A host that does not exist is left out.
type Appraiser interface {
	Appraise(ctx context.Context, hosts []string) (map[string]*result.Claims, error)
}

// Options configure a Service. Store, Root and Log are required.
type Options struct {
	Store    *store.Store
	Root     vault.Root    // seals keys
	Period   time.Duration // that a key signs, more than 7 days; shorter ones are taken as 8 days; 0: until an operator rotates
	Log      *slog.Logger
	Now      func() time.Time // default time.Now
	Examiner Examiner         // nil: this process has no port in the fabric
	Hosts    Appraiser
}

// tenantRate is how often each tenant gets receipts by credentials of its own: they have the fabric read, and only one request at a
// time does.
var tenantRate = limit.Rate{PerSecond: 1.0 / 20, Burst: 5}

// Service issues receipts. Methods are safe for concurrent use, and several Services may share one store. Refusals are
// *refusal.Error.
type Service struct {
	o    Options
	ring *keyring.Ring[ed25519.PrivateKey]
	log  *receiptlog.Log
	// tenants limits requests by credentials of tenants.
	tenants *limit.Limiter[string]
}

// New returns a Service.
func New(o Options) (*Service, error) {
	if o.Period != 0 {
		o.Period = max(o.Period, publishAhead+24*time.Hour)
	}
	ring, err := keyring.New(keyring.Options[ed25519.PrivateKey]{
		Store: o.Store, Root: o.Root, Log: o.Log, Now: o.Now,
		Period: o.Period, Ahead: publishAhead, After: publishAfter,
		Make: makeKey, Open: openKey,
		Words: keyring.Words{
			Name: "receipt-keys", Code: "receipt_keys", Key: "key of receipts", Signed: "all receipts that count", Setting: "results.root",
			Show: "portcullis receipt keys", Anew: "portcullis receipt rotate --drop",
		},
	})
	if err != nil {
		return nil, err
	}
	log := receiptlog.New(o.Store, func(ctx context.Context) (crypto.Signer, error) {
		_, private, err := ring.Current(ctx)
		return private, err
	})
	return &Service{o: o, ring: ring, log: log, tenants: limit.New[string](tenantRate)}, nil
}

func makeKey(_, _ time.Time) (*keyring.Fresh, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	k, err := receipt.NewPublicKey(public)
	return &keyring.Fresh{ID: k.ID(), Public: public, Secret: private.Seed()}, err
}

func openKey(public, seed []byte) (ed25519.PrivateKey, error) {
	if len(seed) != ed25519.SeedSize {
		return nil, errors.New("what is sealed is no key") // its content must not be shown
	}
	private := ed25519.NewKeyFromSeed(seed)
	if !private.Public().(ed25519.PublicKey).Equal(ed25519.PublicKey(public)) {
		return nil, errors.New("what is sealed is another key")
	}
	return private, nil
}

// Prepare creates the first key if there is none, and proves that the root opens the one that signs.
func (s *Service) Prepare(ctx context.Context) error {
	_, _, err := s.ring.Signer(ctx)
	return err
}

// Issue returns a receipt. A credential that is confined to tenants gets one about a single tenant of its own, in which others have
// no names and no numbers, from a reading that requests share.
func (s *Service) Issue(ctx context.Context, actor string, q v1.ReceiptRequest) ([]byte, error) {
	actor = cmp.Or(actor, "local socket")
	age := DefaultAge
	if q.MaxAgeSeconds != 0 {
		age = time.Duration(q.MaxAgeSeconds) * time.Second
	}
	if q.MaxAgeSeconds < 0 || age < minAge || age > MaxAge {
		return nil, refusal.New(refusal.Invalid, "receipt_age", "leave it out, and the receipt counts for a day", "max_age_seconds %d: want %d to %d",
			q.MaxAgeSeconds, int(minAge.Seconds()), int(MaxAge.Seconds()))
	}
	confined, err := s.confined(ctx, q.Tenant)
	if err != nil {
		return nil, err
	}
	if s.o.Examiner == nil {
		return nil, refusal.New(refusal.Unavailable, v1.CodeSMElsewhere, "ask an instance that has the role sm",
			"this process has no port in the fabric, and cannot read it")
	}
	// A key that does not open is found before the fabric is read.
	k, private, err := s.ring.Signer(ctx)
	if err != nil {
		return nil, err
	}
	seen, err := s.o.Examiner.Examine(ctx, v1.IsolationQuery{Tenant: q.Tenant, Membership: q.Membership}, confined)
	if err != nil {
		return nil, err
	}
	p, err := s.predicate(ctx, seen, age)
	if err == nil && q.Host != "" {
		err = narrow(p, q.Host)
	}
	if err == nil && confined {
		err = p.Confine()
	}
	var out []byte
	if err == nil {
		out, err = receipt.Sign(p, private)
	}
	if err != nil {
		return nil, err
	}
	if err := s.record(ctx, actor, p, k.ID, translog.DigestOf(out)); err != nil {
		return nil, err
	}
	s.o.Log.InfoContext(ctx, "a receipt was issued", "actor", actor, "tenant", p.Tenant, "host", p.Host, "verdict", p.Verdict, "until", p.Until(), "key", k.ID)
	return out, nil
}

// narrow has a predicate be about one host, and refuses a host that a receipt cannot be about.
func narrow(p *receipt.Predicate, host string) error {
	err := p.Narrow(host)
	switch {
	case errors.Is(err, receipt.ErrNoHost):
		return &refusal.Error{Code: "receipt_host", Status: refusal.NotFound, Detail: err.Error(), Hint: "portcullis host list shows which tenant a host is assigned to", Err: err}
	case errors.Is(err, receipt.ErrTenants):
		return &refusal.Error{Code: "receipt_tenants", Status: refusal.Conflict, Detail: err.Error(), Hint: "a receipt is about the ports of one tenant: name it with --tenant", Err: err}
	default:
		return err
	}
}

// confined reports whether the request is of a credential that is confined to tenants, and refuses one about others.
func (s *Service) confined(ctx context.Context, tenant string) (bool, error) {
	if !tenancy.Confined(ctx) {
		return false, nil
	}
	snap, err := s.o.Store.Snapshot(ctx)
	if err != nil {
		return true, err
	}
	own, err := tenancy.OwnedBy(ctx, snap)
	switch {
	case err != nil:
		return true, err
	case tenant == "":
		return true, refusal.New(refusal.Invalid, "receipt_tenant", "name one tenant of yours", "this credential gets receipts about a single tenant")
	}
	if err := own.CheckTenant(tenant); err != nil {
		return true, err
	}
	if !s.tenants.Allow(tenant, s.ring.Now()) {
		return true, refusal.New(refusal.Limited, v1.CodeRateLimited, "use the receipt that you have, or wait 20 seconds", "tenant %s asks for receipts too often", tenant)
	}
	return true, nil
}

// predicate puts together what was read of fabric and records. Each part counts for the given time from when it was so.
func (s *Service) predicate(ctx context.Context, seen *Examined, age time.Duration) (*receipt.Predicate, error) {
	d := seen.Detail
	hosts := make([]string, len(d.Ports))
	for i := range d.Ports {
		hosts[i] = d.Ports[i].Host
	}
	judged := s.ring.Now()
	claims, err := s.o.Hosts.Appraise(ctx, hosts)
	if err != nil {
		return nil, err
	}
	f := receipt.Facts{
		Issued: s.ring.Now(), MaxAge: age, Report: d.Report, Pairs: d.Pairs, Ports: d.Ports, Digest: d.Digest.String(), ReadingMaxAge: age,
		Members: receipt.From(seen.Records, age), Topology: seen.Topology, Attestations: map[string]receipt.Judged{},
		Keys: receipt.Keys{Dated: receipt.From(seen.Records, age), Epochs: seen.Epochs},
	}
	f.Topology.Dated = receipt.From(seen.Records, age)
	for _, host := range hosts {
		f.Attestations[host] = judgedOf(claims[host], receipt.From(judged, age))
	}
	p, err := receipt.New(f)
	if err != nil {
		return nil, fmt.Errorf("the facts of the service contradict each other: %w", err)
	}
	return p, nil
}

// judgedOf returns what a receipt says of the claims about a host. Without claims nothing about it counts.
func judgedOf(c *result.Claims, at receipt.Dated) receipt.Judged {
	out := receipt.Judged{Dated: at, Status: result.None}
	if c == nil {
		return out
	}
	if out.Status = c.Status; c.Host.AttestedAt == 0 {
		return out
	}
	out.Evidence = time.Unix(c.Host.AttestedAt, 0)
	for _, appraisal := range c.Submods {
		a := appraisal.Adapter
		if a == nil || a.Firmware == nil || a.Lock == nil {
			continue
		}
		out.Adapters = append(out.Adapters, receipt.Adapter{
			GUID: a.NodeGUID, Firmware: a.Firmware.Version, Assurance: a.Firmware.Assurance, Lock: a.Lock.MLOCK, LockEpoch: a.Lock.Epoch,
		})
	}
	return out
}

// record writes to the audit log what was signed, and puts the receipt into the log of receipts.
func (s *Service) record(ctx context.Context, actor string, p *receipt.Predicate, key string, digest translog.Digest) error {
	object := "fabric"
	switch {
	case p.Host != "":
		object = "host/" + p.Host
	case p.Tenant != "":
		object = "tenant/" + p.Tenant
	}
	ctx = store.Growing(ctx)
	_, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
		leaf, err := s.log.Append(ctx, tx, digest, s.ring.Now())
		if err != nil {
			return err
		}
		return audit.Append(ctx, tx, audit.Entry{
			Time: s.ring.Now(), Actor: actor, Action: "receipt.issue", Object: object,
			Detail: fmt.Sprintf("verdict %s, tables %s, counts until %s, key %s, digest %s, leaf %d", p.Verdict, p.Reading.Digest,
				p.Until().Format(time.RFC3339), key, digest, leaf),
		})
	})
	return refusal.Explain(err)
}

// Rotate has another key sign. With Drop those before are given up at once.
func (s *Service) Rotate(ctx context.Context, actor string, in v1.ReceiptRotation) (*v1.ReceiptKeys, error) {
	keys, err := s.ring.Rotate(ctx, actor, in.Reason, in.Drop)
	if err != nil {
		return nil, err
	}
	return view(keys)
}

// Keys returns the keys that are published and when they sign.
func (s *Service) Keys(ctx context.Context) (*v1.ReceiptKeys, error) {
	keys, err := s.ring.Keys(ctx)
	if err != nil {
		return nil, err
	}
	return view(keys)
}

func view(keys keyring.Keys) (*v1.ReceiptKeys, error) {
	out := &v1.ReceiptKeys{Keys: make([]v1.ReceiptKey, len(keys))}
	for i := range keys {
		k, err := receipt.NewPublicKey(keys[i].Public)
		if err != nil {
			return nil, fmt.Errorf("key %s of receipts: %w", keys[i].ID, err)
		}
		text, err := k.PEM()
		if err != nil {
			return nil, err
		}
		out.Keys[i] = v1.ReceiptKey{ID: k.ID(), Created: keys[i].Created, Signs: keys[i].From, PEM: string(text)}
		if i > 0 {
			out.Keys[i-1].Until = keys[i].From.Add(publishAfter)
		}
	}
	return out, nil
}
