package hostca

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"portcullis/api/admission"
	"portcullis/api/audit"
	"portcullis/api/ca"
	"portcullis/api/store"
	"portcullis/fabricsm/vault"
)

// Bounds of Options.
const (
	MinLife   = 15 * time.Minute
	MaxLife   = 24 * time.Hour // also how long an authority is accepted after the next one began
	MinPeriod = 7 * 24 * time.Hour
	MaxPeriod = 2 * 365 * 24 * time.Hour

	// ahead is how long before it signs an authority is shown to operators.
	ahead = 24 * time.Hour
)

// object is how the audit log calls the authorities.
const object = "host-authority"

// automatic is the actor of what nobody asked for.
const automatic = "service"

// Options configure a Service. Store, Root and Domain are required.
type Options struct {
	Store  *store.Store
	Root   vault.Root    // seals keys
	Domain string        // trust domain: the first part of each host's name
	Life   time.Duration // of a host's certificate; default 8 h
	Period time.Duration // that an authority signs; default 90 days
	Now    func() time.Time
	Rand   io.Reader // default crypto/rand
}

// Service keeps authorities and issues certificates. Methods are safe for concurrent
// use. Refusals are *admission.Error.
type Service struct {
	o Options

	mu     sync.Mutex
	opened map[string]*ca.Authority // by ID
}

// New makes a Service.
func New(o Options) (*Service, error) {
	if o.Life == 0 {
		o.Life = 8 * time.Hour
	}
	if o.Period == 0 {
		o.Period = 90 * 24 * time.Hour
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	switch err := ca.CheckTrustDomain(o.Domain); {
	case err != nil:
		return nil, err
	case o.Life < MinLife || o.Life > MaxLife:
		return nil, fmt.Errorf("life of hosts' certificates %v: want %v to %v", o.Life, MinLife, MaxLife)
	case o.Period < MinPeriod || o.Period > MaxPeriod:
		return nil, fmt.Errorf("period of authorities for hosts %v: want %v to %v", o.Period, MinPeriod, MaxPeriod)
	case o.Root == nil:
		return nil, errors.New("certificates of hosts: no root to seal the authority's key with")
	}
	return &Service{o: o, opened: map[string]*ca.Authority{}}, nil
}

func (s *Service) now() time.Time { return s.o.Now().UTC().Round(0) }

// Open makes the first authority where there is none, and sees that the key of the one
// that signs opens.
func (s *Service) Open(ctx context.Context) error {
	rec, err := s.current(ctx)
	if err != nil {
		return err
	}
	_, err = s.open(&rec, rec.signer(s.now()))
	return err
}

// Issue gives a certificate to a key of a host.
func (s *Service) Issue(ctx context.Context, host string, key *ecdsa.PublicKey) (*x509.Certificate, error) {
	rec, err := s.current(ctx)
	if err != nil {
		return nil, err
	}
	signer, err := s.open(&rec, rec.signer(s.now()))
	if err != nil {
		return nil, err
	}
	return signer.IssueHost(s.o.Domain, host, key, s.now(), s.o.Life)
}

// Pool gives the authorities whose certificates count now.
func (s *Service) Pool(ctx context.Context) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	rec, err := s.read(ctx, s.o.Store)
	if err != nil {
		return pool, err
	}
	for _, a := range rec.trusted(s.now()) {
		c, err := x509.ParseCertificate(a.Certificate)
		if err != nil {
			return pool, fmt.Errorf("authority %s for hosts: %w", a.ID, err)
		}
		pool.AddCert(c)
	}
	return pool, nil
}

// Identify verifies a certificate and gives the host that it names.
func (s *Service) Identify(ctx context.Context, c *x509.Certificate) (string, error) {
	pool, err := s.Pool(ctx)
	if err != nil {
		return "", err
	}
	host, err := ca.HostOf(c, pool, s.o.Domain, s.now())
	if err != nil {
		return "", &admission.Error{
			Code: "certificate_unknown", Status: admission.Refused, Err: err,
			Detail: "the client certificate is not one of a host of this service that is in force: " + err.Error(),
		}
	}
	return host, nil
}

func (s *Service) read(ctx context.Context, r store.Reader) (record, error) {
	rec, err := records().Get(ctx, r, theRecord)
	if errors.Is(err, store.ErrNotFound) {
		return record{}, nil
	}
	return rec.Value, err
}

// current gives the authorities, after it made the next one where that is due.
func (s *Service) current(ctx context.Context) (record, error) {
	rec, err := s.read(ctx, s.o.Store)
	if _, due := s.due(&rec); err != nil || !due {
		return rec, explain(err)
	}
	_, err = s.o.Store.Update(ctx, func(tx *store.Tx) (err error) {
		if rec, err = s.read(ctx, tx); err != nil {
			return err
		}
		from, due := s.due(&rec)
		if !due {
			return nil // another replica was first
		}
		return s.add(ctx, tx, &rec, from, automatic, "it was due")
	})
	return rec, explain(err)
}

// due reports that the next authority is to be made, and from when it signs.
func (s *Service) due(rec *record) (from time.Time, due bool) {
	now, n := s.now(), len(rec.Authorities)
	if n == 0 {
		return now, true
	}
	switch last := rec.Authorities[n-1]; {
	case last.Domain != s.o.Domain, last.Until.Before(now.Add(ahead + MaxLife)):
		return now, true
	case !last.From.Add(s.o.Period - ahead).After(now):
		return now.Add(ahead), true
	default:
		return time.Time{}, false
	}
}

// add makes an authority in tx. Those of another trust domain do not count any more.
func (s *Service) add(ctx context.Context, tx *store.Tx, rec *record, from time.Time, actor, why string) error {
	kept := []authority{}
	for _, a := range rec.trusted(s.now()) {
		if a.Domain == s.o.Domain {
			kept = append(kept, a)
		}
	}
	if len(kept) == 0 {
		rec.Vault = nil // nothing in it is wanted
	}
	v, err := s.vault(rec)
	if err != nil {
		return err
	}
	made, err := ca.NewHosts(s.o.Domain, s.now(), from.Add(2*s.o.Period+MaxLife))
	if err != nil {
		return err
	}
	key, err := made.KeyDER()
	if err != nil {
		return err
	}
	defer clear(key)
	c := made.Certificate()
	a := authority{ID: c.SerialNumber.Text(16), Domain: s.o.Domain, Certificate: c.Raw, From: from, Until: c.NotAfter.UTC()}
	if a.Key, err = v.Seal(sealedAs(a.ID), 1, key); err != nil {
		return err
	}
	rec.Vault, rec.Authorities = v.Header(), append(kept, a)
	return errors.Join(records().Put(tx, theRecord, *rec), audit.Append(ctx, tx, audit.Entry{
		Time: s.now(), Actor: actor, Action: "host-authority.rotate", Object: object, Code: "ok",
		Detail: fmt.Sprintf("authority %s for certificates of hosts of %s signs from %s: %s; %d others are accepted still",
			a.ID, a.Domain, from.Format(time.RFC3339), why, len(kept)),
	}))
}

func sealedAs(id string) string { return object + "/" + id }

// vault opens what the keys are sealed in, or makes it.
func (s *Service) vault(rec *record) (*vault.Vault, error) {
	if rec.Vault == nil {
		return vault.Create(s.o.Root, s.o.Rand)
	}
	v, err := vault.Open(rec.Vault, s.o.Root, s.o.Rand)
	if err != nil {
		return nil, locked(err)
	}
	return v, nil
}

func locked(err error) error {
	return &admission.Error{
		Code: "authority_locked", Status: admission.Unavailable, Err: err,
		Detail: fmt.Sprintf("the key of the authority for hosts does not open: %v", err),
		Hint:   "bring back the root that it was sealed under (host_certificates.ca_root); if that is lost, begin anew, which ends all certificates of hosts: portcullis authority rotate --at-once",
	}
}

// open gives an authority with its key.
func (s *Service) open(rec *record, i int) (*ca.Authority, error) {
	if i < 0 {
		return nil, locked(errors.New("none signs now"))
	}
	a := &rec.Authorities[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.opened[a.ID]; known != nil {
		return known, nil
	}
	v, err := s.vault(rec)
	if err != nil {
		return nil, err
	}
	key, _, err := v.Open(sealedAs(a.ID), a.Key)
	if err != nil {
		return nil, locked(err)
	}
	defer clear(key)
	made, err := ca.Parse(a.Certificate, key)
	if err != nil {
		return nil, locked(err)
	}
	s.opened = map[string]*ca.Authority{a.ID: made}
	return made, nil
}

func explain(err error) error {
	if _, ours := errors.AsType[*admission.Error](err); err == nil || ours {
		return err
	}
	return admission.Unconfirmed(err, "look at the authorities again: portcullis authority show")
}

func fingerprint(der []byte) string { return hex.EncodeToString(sum(der)) }
