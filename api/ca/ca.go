// Package ca makes certificates: the self-signed root of a fresh installation, which
// issues the service's TLS certificate and is pinned by agents and the CLI; and roots
// for the certificates of hosts. Package hostca keeps those.
package ca

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	rootLife   = 10 * 365 * 24 * time.Hour
	serverLife = 2 * 365 * 24 * time.Hour

	// backdate lets hosts whose clock is a little behind accept a
	// certificate that was just made.
	backdate = time.Hour
)

// Authority is a root certificate and its key.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair is a certificate and its private key, both PEM.
type Pair struct{ Cert, Key []byte }

// New makes a root named name that is valid for ten years from now.
func New(name string, now time.Time) (*Authority, error) {
	return newRoot(name, now, rootLife, func(c *x509.Certificate) {})
}

// newRoot makes a root; with may change the template.
func newRoot(name string, now time.Time, life time.Duration, with func(*x509.Certificate)) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make CA key: %w", err)
	}
	tmpl, err := template(name, now, life)
	if err != nil {
		return nil, err
	}
	tmpl.IsCA, tmpl.BasicConstraintsValid, tmpl.MaxPathLenZero = true, true, true
	tmpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	with(tmpl)
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign CA certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back CA certificate: %w", err)
	}
	return &Authority{cert: cert, key: key}, nil
}

// PEM returns the root certificate and its key.
func (a *Authority) PEM() (Pair, error) { return encode(a.cert.Raw, a.key) }

// IssueServer makes a TLS server certificate for names, each a DNS name or an
// IP address, valid for two years from now.
func (a *Authority) IssueServer(names []string, now time.Time) (Pair, error) {
	if len(names) == 0 {
		return Pair{}, errors.New("issue server certificate: no names")
	}
	return a.issue(names[0], names, serverLife, now, x509.ExtKeyUsageServerAuth)
}

// issue makes a certificate of subject, for names and uses, and its key.
func (a *Authority) issue(subject string, names []string, life time.Duration, now time.Time, uses ...x509.ExtKeyUsage) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make key of %s: %w", subject, err)
	}
	tmpl, err := template(subject, now, life)
	if err != nil {
		return Pair{}, err
	}
	tmpl.KeyUsage, tmpl.ExtKeyUsage = x509.KeyUsageDigitalSignature, uses
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			tmpl.IPAddresses = append(tmpl.IPAddresses, ip)
		} else {
			tmpl.DNSNames = append(tmpl.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign certificate of %s: %w", subject, err)
	}
	return encode(der, key)
}

func template(name string, now time.Time, life time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("draw serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(life),
	}, nil
}

func encode(der []byte, key *ecdsa.PrivateKey) (Pair, error) {
	k, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encode private key: %w", err)
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: k}),
	}, nil
}
