// Package servercert holds the certificate of the service for TLS.
package servercert

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"
)

// Certificate is the service's TLS certificate, replaced by Reload while
// connections go on.
type Certificate struct {
	certFile, keyFile string
	current           atomic.Pointer[tls.Certificate]
}

// Load reads a PEM certificate chain and its private key. It accepts a certificate that has ended, so that
// the service and its Subnet Manager start; Usable reports it.
func Load(certFile, keyFile string) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile}
	pair, err := c.read()
	if err != nil {
		return nil, err
	}
	c.current.Store(pair)
	return c, nil
}

// Reload reads the files again. On error, also for a chain that is not usable at now, the
// certificate in use stays.
func (c *Certificate) Reload(now time.Time) error {
	pair, err := c.read()
	if err == nil {
		err = c.usable(pair, now)
	}
	if err != nil {
		return err
	}
	c.current.Store(pair)
	return nil
}

func (c *Certificate) read() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("read TLS file %s: %w", pathErr.Path, pathErr.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("TLS certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	return &pair, nil
}

// leastLeft is how long a certificate must be valid yet to be taken into use. Some authorities issue for a day.
const leastLeft = time.Hour

// Usable returns an error if a certificate of the chain in use is not valid yet, or ends within an hour.
func (c *Certificate) Usable(now time.Time) error { return c.usable(c.current.Load(), now) }

func (c *Certificate) usable(pair *tls.Certificate, now time.Time) error {
	chain, err := x509.ParseCertificates(slices.Concat(pair.Certificate...))
	if err != nil {
		return fmt.Errorf("TLS certificate %s: %w", c.certFile, err)
	}
	for _, one := range chain {
		switch {
		case now.Before(one.NotBefore):
			return fmt.Errorf("TLS certificate %s: %q is valid from %s on, and it is %s: check the clock, or wait", c.certFile, one.Subject.CommonName, stamp(one.NotBefore), stamp(now))
		case now.Add(leastLeft).After(one.NotAfter):
			return fmt.Errorf("TLS certificate %s: %q ends at %s, and it is %s: issue another one", c.certFile, one.Subject.CommonName, stamp(one.NotAfter), stamp(now))
		}
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Pin returns the SHA-256 of the public key (SubjectPublicKeyInfo) of the certificate in
// use.
func (c *Certificate) Pin() []byte {
	pin := sha256.Sum256(c.current.Load().Leaf.RawSubjectPublicKeyInfo)
	return pin[:]
}

// Ends returns when the first certificate of the chain in use ends.
func (c *Certificate) Ends() time.Time {
	ends := c.current.Load().Leaf.NotAfter
	chain, _ := x509.ParseCertificates(slices.Concat(c.current.Load().Certificate...)) // it was parsed before
	for _, one := range chain {
		if one.NotAfter.Before(ends) {
			ends = one.NotAfter
		}
	}
	return ends
}

// Soon returns an error that says when the chain in use ends, if that is within 30 days, or within a third of its
// life where it lives shorter.
func (c *Certificate) Soon(now time.Time) error {
	const month = 30 * 24 * time.Hour
	leaf, ends := c.current.Load().Leaf, c.Ends()
	warn := min(month, leaf.NotAfter.Sub(leaf.NotBefore)/3)
	left := ends.Sub(now)
	switch {
	case left <= 0:
		return fmt.Errorf("the TLS certificate %s ended at %s: clients refuse this service; issue another one, then: systemctl reload portcullisd", c.certFile, stamp(ends))
	case left <= warn:
		return fmt.Errorf("the TLS certificate %s ends at %s: issue another one, then: systemctl reload portcullisd", c.certFile, stamp(ends))
	}
	return nil
}

// Config returns the server's TLS configuration: TLS 1.3 only, because channel binding needs it and every caller is ours.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.current.Load(), nil
		},
	}
}
