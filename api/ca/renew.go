package ca

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// leastLife is the shortest life of a renewed certificate: an authority that ends before is to be replaced first.
const leastLife = 60 * 24 * time.Hour

// ParsePEM puts a root together again, of its certificate and its private key (PKCS #8), both PEM.
func ParsePEM(cert, key []byte) (*Authority, error) {
	c, _ := pem.Decode(cert)
	if c == nil || c.Type != "CERTIFICATE" {
		return nil, errors.New("CA certificate: no PEM block CERTIFICATE")
	}
	k, _ := pem.Decode(key)
	if k == nil || k.Type != "PRIVATE KEY" {
		return nil, errors.New("CA key: no PEM block PRIVATE KEY")
	}
	return Parse(c.Bytes, k.Bytes)
}

// RenewServer makes the certificate that follows one: for the same names and the same key, valid for two years from now
// or until the root ends. It refuses one that another authority issued, and to issue one that ends within 60 days.
func (a *Authority) RenewServer(old *x509.Certificate, now time.Time) (certPEM []byte, ends time.Time, err error) {
	if err := old.CheckSignatureFrom(a.cert); err != nil {
		return nil, time.Time{}, fmt.Errorf("certificate %q is of issuer %q, and not of CA %q", old.Subject.CommonName, old.Issuer.CommonName, a.cert.Subject.CommonName)
	}
	if len(old.DNSNames)+len(old.IPAddresses) == 0 {
		return nil, time.Time{}, fmt.Errorf("certificate %q has no names", old.Subject.CommonName)
	}
	tmpl, err := template(old.Subject.CommonName, now, serverLife)
	if err != nil {
		return nil, time.Time{}, err
	}
	if tmpl.NotAfter.After(a.cert.NotAfter) {
		tmpl.NotAfter = a.cert.NotAfter
	}
	if tmpl.NotAfter.Sub(now) < leastLife {
		return nil, time.Time{}, fmt.Errorf("CA %q ends at %s: its successor has to be made and pinned by agents and clients first", a.cert.Subject.CommonName, a.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	tmpl.KeyUsage, tmpl.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	tmpl.DNSNames, tmpl.IPAddresses = old.DNSNames, old.IPAddresses
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, old.PublicKey, a.key)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("sign server certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), tmpl.NotAfter, nil
}
