package clientcert

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"portcullis/api/ca"
	"portcullis/api/credential"
)

// maxVerified bounds the certificates that a Verifier remembers.
const maxVerified = 4096

// Refused says why a certificate is refused, and what to do about it.
type Refused struct {
	Detail, Hint string

	Forbidden bool // the certificate is good, but no rule assigns a role to it
	Busy      bool // it was not looked at: others are served first
}

// Error implements error.
func (e *Refused) Error() string { return "client certificate: " + e.Detail }

// refuse makes a Refused. The hint has no formatting.
func refuse(format, hint string, args ...any) error {
	return &Refused{Detail: fmt.Sprintf(format, args...), Hint: hint}
}

const hintAnother = "have its authority issue another one, or connect without a certificate"

// Verifier verifies certificates of authorities. Its methods are safe for concurrent use.
type Verifier struct{ now atomic.Pointer[state] }

// state is what counts between two calls of Set.
type state struct {
	authorities []Authority
	pools       []*x509.CertPool // by authority

	mu       sync.Mutex
	verified map[[sha256.Size]byte]credential.Principal
}

// Turn is what Authenticate waits for before it looks at a certificate that is not verified. It reports whether there was one in time.
type Turn func(ctx context.Context) (leave func(), ok bool)

// New makes a Verifier of authorities without problems.
func New(all []Authority) (*Verifier, error) {
	v := &Verifier{}
	return v, v.Set(all)
}

// Set replaces the authorities: what was verified by those before counts no more. On error those before stay.
func (v *Verifier) Set(all []Authority) error {
	next := &state{authorities: slices.Clone(all), verified: map[[sha256.Size]byte]credential.Principal{}}
	for n := range all {
		a := &all[n]
		if p := a.Problems(); len(p) > 0 {
			return fmt.Errorf("authority %q of client certificates: %s: %s", a.Name, p[0].Field, p[0].Text)
		}
		pool := x509.NewCertPool()
		for _, c := range a.Roots {
			if err := checkRoot(c); err != nil {
				return fmt.Errorf("authority %q of client certificates: %w", a.Name, err)
			}
			pool.AddCert(c)
		}
		next.pools = append(next.pools, pool)
	}
	if p := Conflicts(all); len(p) > 0 {
		return fmt.Errorf("authorities of client certificates: %s: %s", p[0].Field, p[0].Text)
	}
	v.now.Store(next)
	return nil
}

// Authorities returns those of the last Set. The caller does not change them.
func (v *Verifier) Authorities() []Authority { return v.now.Load().authorities }

// Judges reports whether a certificate is to be judged here: there are authorities, and no authority for hosts signed it.
func (v *Verifier) Judges(leaf *x509.Certificate) bool {
	return len(v.now.Load().authorities) > 0 && !ca.OfHosts(leaf)
}

// Known returns the owner of a certificate that was verified before, and is in force. It does no work for others.
func (v *Verifier) Known(leaf *x509.Certificate, now time.Time) (credential.Principal, bool) {
	if len(leaf.Raw) > maxShown { // it is never verified, and a stranger could have much hashed with each request
		return credential.Principal{}, false
	}
	s := v.now.Load()
	digest := sha256.Sum256(leaf.Raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	who, ok := s.verified[digest]
	switch {
	case !ok:
		return credential.Principal{}, false
	case who.Ended(now) || now.Before(leaf.NotBefore):
		delete(s.verified, digest)
		return credential.Principal{}, false
	}
	return who, true
}

// Authenticate returns the owner of the first certificate that a client has shown; those after it lead to an authority. Every refusal is
// a *Refused. It takes a turn while it verifies.
func (v *Verifier) Authenticate(ctx context.Context, shown []*x509.Certificate, now time.Time, turn Turn) (credential.Principal, error) {
	if len(shown) > 0 {
		if who, ok := v.Known(shown[0], now); ok {
			return who, nil
		}
	}
	leave, ok := turn(ctx)
	if !ok {
		return credential.Principal{}, &Refused{Busy: true, Detail: "too many requests without a known credential are under way", Hint: "try again"}
	}
	defer leave()
	return v.Verify(shown, now)
}

// Verify is Authenticate without a turn: for a certificate that was verified once.
func (v *Verifier) Verify(shown []*x509.Certificate, now time.Time) (credential.Principal, error) {
	s := v.now.Load()
	if err := bounded(shown); err != nil {
		return credential.Principal{}, err
	}
	who, err := s.verify(shown, now)
	if err != nil {
		return credential.Principal{}, err
	}
	s.remember(shown[0], who)
	return who, nil
}

// remember keeps a verified certificate, in place of any other one where there are as many as may be.
func (s *state) remember(leaf *x509.Certificate, who credential.Principal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.verified) >= maxVerified {
		for other := range s.verified {
			delete(s.verified, other)
			break
		}
	}
	s.verified[sha256.Sum256(leaf.Raw)] = who
}

// verify finds the authority of a certificate, and what its rules assign.
func (s *state) verify(shown []*x509.Certificate, now time.Time) (who credential.Principal, _ error) {
	leaf := shown[0]
	if err := checkLeaf(leaf, now); err != nil {
		return who, err
	}
	n, err := namesOf(leaf)
	if err != nil {
		return who, err
	}
	if err := checkUse(leaf, &n); err != nil {
		return who, err
	}
	var last error
	for i := range s.authorities {
		a := &s.authorities[i]
		if n.spiffe.TrustDomain != "" && n.spiffe.TrustDomain != a.TrustDomain {
			continue
		}
		end, err := s.chain(i, shown, now)
		if err == nil {
			return a.owner(leaf, &n, end)
		}
		last = err
	}
	if last == nil {
		return who, refuse("its trust domain %.128q is none of those that are accepted here", "name it at trust_domain of client_certificates in the configuration of the service, or connect without a certificate", n.spiffe.TrustDomain)
	}
	return who, last
}

// chain verifies that an authority vouches for a certificate, and returns when the chain ends: of several the one that ends last.
func (s *state) chain(authority int, shown []*x509.Certificate, now time.Time) (end time.Time, _ error) {
	between := x509.NewCertPool()
	for _, c := range shown[1:] {
		between.AddCert(c)
	}
	chains, err := shown[0].Verify(x509.VerifyOptions{
		Roots: s.pools[authority], Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
			return end, refuse("an authority above it has ended, or is not in force yet", "have the authority publish its next certificate, and show the ones between; the service reads ca_file again at a reload")
		}
		return end, refuse("no authority of %s vouches for it: %v", "show the certificates between it and the authority too, or connect without a certificate", s.authorities[authority].Name, err)
	}
	for _, chain := range chains {
		first := chain[0].NotAfter
		for _, c := range chain[1:] {
			if c.NotAfter.Before(first) {
				first = c.NotAfter
			}
		}
		if first.After(end) {
			end = first
		}
	}
	return end, nil
}

// owner returns what the rules of an authority assign to a certificate that it vouches for.
func (a *Authority) owner(leaf *x509.Certificate, n *names, end time.Time) (who credential.Principal, _ error) {
	if a.refuses(leaf.SerialNumber, n) {
		return who, refuse("the list refuse of the authority %s has it", "ask the operators of the service", a.Name)
	}
	for i := range a.Rules {
		r := &a.Rules[i]
		name, ok := matches(r.SPIFFE, r.DNS, n)
		if !ok {
			continue
		}
		who = credential.Principal{
			Name: NamePrefix + a.Name + ":" + name, Role: r.Role, Provider: a.Name, Machine: true, Created: leaf.NotBefore, Expires: end,
		}
		if _, err := who.Scope(&r.Scope); err != nil {
			return credential.Principal{}, err // Set has refused that
		}
		return who, nil
	}
	return who, &Refused{
		Forbidden: true, Detail: "the client certificate is good, and no rule of the authority " + a.Name + " assigns a role to " + n.String(),
		Hint: "add a rule to client_certificates in the configuration of the service, and reload it",
	}
}
