package ca

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// clusterLife is how long certificates of members and clients of a store are valid.
const clusterLife = 2 * 365 * 24 * time.Hour

// Load reads an authority from its certificate and key.
func Load(p Pair) (*Authority, error) {
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !pair.Leaf.IsCA {
		return nil, errors.New("read the certificate authority: it is no CA certificate with an ECDSA key")
	}
	return &Authority{cert: pair.Leaf, key: key}, nil
}

// IssuePeer makes a certificate for a server that also connects to others, valid for
// two years from now. names are its DNS names and IP addresses.
func (a *Authority) IssuePeer(subject string, names []string, now time.Time) (Pair, error) {
	if len(names) == 0 {
		return Pair{}, fmt.Errorf("issue certificate of %s: no names", subject)
	}
	return a.issue(subject, names, clusterLife, now, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

// IssueClient makes a TLS client certificate, valid for two years from now.
func (a *Authority) IssueClient(subject string, now time.Time) (Pair, error) {
	return a.issue(subject, nil, clusterLife, now, x509.ExtKeyUsageClientAuth)
}

// Revoke returns the revocation list, in DER, of the authority's certificates with
// the serial numbers, valid as long as the authority. serials may be empty. before is the
// number of the list that it replaces, or nil.
func (a *Authority) Revoke(serials []*big.Int, before *big.Int, now time.Time) ([]byte, error) {
	number := big.NewInt(now.UnixNano())
	if before != nil && number.Cmp(before) <= 0 { // the clock that made the list before was ahead
		number.Add(before, big.NewInt(1))
	}
	list := &x509.RevocationList{
		// A later list has a higher number.
		Number: number, ThisUpdate: now.Add(-backdate), NextUpdate: a.cert.NotAfter,
	}
	slices.SortFunc(serials, (*big.Int).Cmp)
	for _, s := range slices.CompactFunc(serials, func(a, b *big.Int) bool { return a.Cmp(b) == 0 }) {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: s, RevocationTime: now})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign the list of revoked certificates: %w", err)
	}
	return der, nil
}

// ParseCertificate reads the first certificate of a PEM file.
func ParseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("no certificate in PEM form")
	}
	return x509.ParseCertificate(block.Bytes)
}
