package ek

import (
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"slices"
	"time"
)

// Trust is what certificates are checked against.
type Trust struct {
	Roots            *x509.CertPool
	Intermediates    *x509.CertPool  // issuers the site knows; the host may send more
	Denied           map[string]bool // hex SHA-256 of SubjectPublicKeyInfo: EKs and issuing CAs
	IgnoreLeafExpiry bool            // an expired EK certificate causes a note, not an error
}

// Check verifies an EK certificate, certs[0], with a chain over the other
// certs or known intermediates to a root. Errors are of one of the classes in
// this package.
func (t *Trust) Check(now time.Time, kind Kind, certs [][]byte) (*Endorsement, error) {
	if len(certs) == 0 {
		return nil, fmt.Errorf("%w: none", ErrParse)
	}
	leaf, err := parse(certs[0])
	if err != nil {
		return nil, err
	}
	e, err := endorse(kind, leaf.PublicKey)
	if err != nil {
		return nil, err
	}
	if e.Model, err = modelOf(leaf); err != nil {
		return nil, err
	}
	takeSAN(leaf)
	if err := checkUsage(leaf); err != nil {
		return nil, err
	}
	if err := t.checkDates(now, leaf, e); err != nil {
		return nil, err
	}
	return e, t.checkChain(now, leaf, certs[1:], e)
}

// checkDates handles the leaf's validity; that of its issuers is part of the
// chain. After it the leaf's own dates no longer matter.
func (t *Trust) checkDates(now time.Time, leaf *x509.Certificate, e *Endorsement) error {
	switch {
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("%w: it begins %s, later than now", ErrExpired, leaf.NotBefore.UTC().Format(time.RFC3339))
	case now.After(leaf.NotAfter) && !t.IgnoreLeafExpiry:
		return fmt.Errorf("%w: it ended %s; policy is strict", ErrExpired, leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.After(leaf.NotAfter):
		e.Notes = append(e.Notes, "EK certificate ended "+leaf.NotAfter.UTC().Format(time.RFC3339)+"; policy ignores that")
		leaf.NotAfter = now
	}
	return nil
}

func (t *Trust) checkChain(now time.Time, leaf *x509.Certificate, more [][]byte, e *Endorsement) error {
	if t.Roots == nil {
		return fmt.Errorf("%w: no EK roots are configured", ErrChain)
	}
	inter := x509.NewCertPool()
	if t.Intermediates != nil {
		inter = t.Intermediates.Clone()
	}
	names := map[string]int{}
	for i, b := range more {
		ca, err := parse(b)
		if err == nil {
			names[string(ca.RawSubject)]++
			err = cheap(ca, names[string(ca.RawSubject)])
		}
		if err != nil {
			return fmt.Errorf("issuer %d: %w", i+1, err)
		}
		inter.AddCert(ca)
	}
	chains, err := leaf.Verify(x509.VerifyOptions{
		Roots: t.Roots, Intermediates: inter, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}, // the EK usage is checked by hand, here and in checkUsage
	})
	if err != nil {
		return fmt.Errorf("%w: %v", ErrChain, err)
	}
	if chains, err = issuing(chains); err != nil {
		return err
	}
	return t.checkDenied(chains, e)
}

// issuing returns the chains in which each intermediate may issue EK certificates. The purpose of a root is decided by the
// site, which names it.
func issuing(chains [][]*x509.Certificate) (out [][]*x509.Certificate, err error) {
	for _, chain := range chains {
		inner := chain[1:max(1, len(chain)-1)]
		i := slices.IndexFunc(inner, func(ca *x509.Certificate) bool { return !mayIssue(ca) })
		if i < 0 {
			out = append(out, chain)
			continue
		}
		err = fmt.Errorf("%w: issuer %q is not for EK certificates: its extended key usages have neither %v nor any", ErrChain, inner[i].Subject, oidUsage)
	}
	if len(out) > 0 {
		return out, nil
	}
	return nil, err
}

// Bounds of issuers that a host sends. A sender needs no TPM for it. The time to verify grows with the square of an RSA
// key's length, for each path through certificates of one name. TPM makers have keys of up to 4096 bits, and two
// certificates of a name where one CA certifies another's. A site knows others beforehand (Intermediates).
const (
	maxIssuerBits = 4096
	maxSameName   = 2
)

// cheap refuses an issuer from a host that would be costly to verify with; same counts
// those of its name.
func cheap(ca *x509.Certificate, same int) error {
	if key, ok := ca.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxIssuerBits {
		return fmt.Errorf("%w: an RSA key of %d bits, at most %d are taken from a host: name its file in attestation.ek.roots", ErrChain, key.N.BitLen(), maxIssuerBits)
	}
	if same > maxSameName {
		return fmt.Errorf("%w: more than %d certificates of one name", ErrChain, maxSameName)
	}
	return nil
}

// checkDenied wants one chain without a denied key.
func (t *Trust) checkDenied(chains [][]*x509.Certificate, e *Endorsement) error {
	if err := t.CheckDenied(e); err != nil {
		return err
	}
	var denied error
	for _, chain := range chains {
		denied, e.Issuers = nil, nil
		for _, ca := range chain[1:] {
			d, err := Digest(ca.PublicKey)
			if err != nil {
				return err
			}
			e.Issuers = append(e.Issuers, d)
			if t.Denied[d] {
				denied = fmt.Errorf("%w: issuer %q is on the deny list", ErrRevoked, ca.Subject)
			}
		}
		if denied == nil {
			return nil
		}
	}
	return denied
}

// CheckDenied refuses an EK on the deny list.
func (t *Trust) CheckDenied(e *Endorsement) error {
	if t.Denied[e.Digest] {
		return fmt.Errorf("%w: EK %s is on the deny list", ErrRevoked, e.Digest)
	}
	return nil
}
