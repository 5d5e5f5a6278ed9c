package hostca

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"time"

	"portcullis/api/ca"
	"portcullis/api/keyring"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
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

// Options configure a Service. Store, Root, Domain and Log are required.
type Options struct {
	Store  *store.Store
	Root   vault.Root    // seals keys
	Domain string        // trust domain: the first part of each host's name
	Life   time.Duration // of a host's certificate; default 8 h
	Period time.Duration // that an authority signs; default 90 days
	Log    *slog.Logger
	Now    func() time.Time // default time.Now
}

// Service issues certificates. Methods are safe for concurrent use, and several Services
// may share one store. Refusals are *refusal.Error.
type Service struct {
	o    Options
	ring *keyring.Ring[*ca.Authority]
}

// New makes a Service.
func New(o Options) (*Service, error) {
	if o.Life == 0 {
		o.Life = 8 * time.Hour
	}
	if o.Period == 0 {
		o.Period = 90 * 24 * time.Hour
	}
	switch err := ca.CheckTrustDomain(o.Domain); {
	case err != nil:
		return nil, err
	case o.Life < MinLife || o.Life > MaxLife:
		return nil, fmt.Errorf("life of hosts' certificates %v: want %v to %v", o.Life, MinLife, MaxLife)
	case o.Period < MinPeriod || o.Period > MaxPeriod:
		return nil, fmt.Errorf("period of authorities for hosts %v: want %v to %v", o.Period, MinPeriod, MaxPeriod)
	}
	s := &Service{o: o}
	var err error
	s.ring, err = keyring.New(keyring.Options[*ca.Authority]{
		Store: o.Store, Root: o.Root, Log: o.Log, Now: o.Now,
		Scope: o.Domain, Period: o.Period, Ahead: ahead, After: MaxLife,
		Make: s.makeAuthority, Open: ca.Parse,
		Words: keyring.Words{
			Name: "host-authority", Code: "authority", Key: "authority for hosts", Signed: "all certificates of hosts", Setting: "host_certificates.ca_root",
			Show: "portcullis authority show", Anew: "portcullis authority rotate --at-once --yes",
		},
	})
	return s, err
}

// makeAuthority makes a root: the public half its certificate, the private one PKCS #8.
func (s *Service) makeAuthority(now, from time.Time) (*keyring.Fresh, error) {
	made, err := ca.NewHosts(s.o.Domain, now, from.Add(2*s.o.Period+MaxLife))
	if err != nil {
		return nil, err
	}
	key, err := made.KeyDER()
	c := made.Certificate()
	return &keyring.Fresh{ID: c.SerialNumber.Text(16), Public: c.Raw, Secret: key, Until: c.NotAfter.UTC()}, err
}

// Prepare makes the first authority where there is none, and sees that the key of the one
// that signs opens.
func (s *Service) Prepare(ctx context.Context) error {
	_, _, err := s.ring.Signer(ctx)
	return err
}

// Issue issues a certificate for a key of a host.
func (s *Service) Issue(ctx context.Context, host string, key *ecdsa.PublicKey) (*x509.Certificate, error) {
	_, signer, err := s.ring.Signer(ctx)
	if err != nil {
		return nil, err
	}
	return signer.IssueHost(s.o.Domain, host, key, s.ring.Now(), s.o.Life)
}

// Pool returns the authorities whose certificates count now, as keyring.Ring.Recent knows them: it runs for each stranger
// that connects. With an error there are none.
func (s *Service) Pool(ctx context.Context) (*x509.CertPool, error) {
	keys, err := s.ring.Recent(ctx)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for i := range keys {
		c, err := x509.ParseCertificate(keys[i].Public)
		if err != nil {
			err = fmt.Errorf("authority %s for hosts: %w", keys[i].ID, err)
			s.o.Log.ErrorContext(ctx, "no certificate of a host is believed", "err", err)
			return nil, err
		}
		pool.AddCert(c)
	}
	return pool, nil
}

// Identify verifies a certificate and returns the host that it names.
func (s *Service) Identify(ctx context.Context, c *x509.Certificate) (string, error) {
	pool, err := s.Pool(ctx)
	if err != nil {
		return "", err
	}
	host, err := ca.HostOf(c, pool, s.o.Domain, s.ring.Now())
	if err != nil {
		return "", &refusal.Error{
			Code: "certificate_unknown", Status: refusal.Refused, Err: err,
			Detail: "the client certificate is not one of a host of this service that is in force: " + err.Error(),
		}
	}
	return host, nil
}

// Authorities lists those whose certificates count now, the one that signs last among
// those that sign, and the next one if there is one.
func (s *Service) Authorities(ctx context.Context) (*v1.HostAuthorities, error) {
	keys, err := s.ring.Keys(ctx)
	return s.view(keys), err
}

// Rotate makes the next authority. It signs in a day, so that relying parties can learn
// of it, and certificates of those before stay valid. At once: it signs now, and all
// others and their certificates end, here at once and by other Services after
// keyring.Recently.
func (s *Service) Rotate(ctx context.Context, actor string, in v1.AuthorityRotation) (*v1.HostAuthorities, error) {
	keys, err := s.ring.Rotate(ctx, actor, in.Reason, in.AtOnce)
	return s.view(keys), err
}

func (s *Service) view(keys keyring.Keys) *v1.HostAuthorities {
	out := &v1.HostAuthorities{TrustDomain: s.o.Domain, Life: int(s.o.Life / time.Second), Items: []v1.HostAuthority{}}
	signer := keys.Signer(s.ring.Now())
	for i := range keys {
		k, state := &keys[i], v1.AuthoritySigns
		switch {
		case i < signer:
			state = v1.AuthorityAccepted
		case i > signer:
			state = v1.AuthorityNext
		}
		out.Items = append(out.Items, v1.HostAuthority{
			ID: k.ID, State: state, From: k.From, Until: k.Until, SHA256: fmt.Sprintf("%x", sha256.Sum256(k.Public)),
			Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: k.Public})),
		})
	}
	return out
}
