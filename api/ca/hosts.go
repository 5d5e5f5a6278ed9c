package ca

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// hostBackdate lets relying parties whose clocks are a little behind accept a
// host's certificate that was just made.
const hostBackdate = 5 * time.Minute

// segment is what SPIFFE allows in a part of a path; inventory allows ':' too.
var segment = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// domain is a name as DNS has it, of at least one label.
var domain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

// CheckTrustDomain refuses what is no trust domain (SPIFFE-ID, 2.1; as strict as DNS,
// since it also stands in the name constraint of the root).
func CheckTrustDomain(name string) error {
	if len(name) > 253 || !domain.MatchString(name) || !strings.ContainsAny(name, "abcdefghijklmnopqrstuvwxyz") {
		return fmt.Errorf("trust domain %q: want a name such as fabric.example.com, in lower case", name)
	}
	return nil
}

// HostURI is the name of a host in its certificate: spiffe://DOMAIN/host/ID.
func HostURI(trustDomain, host string) (*url.URL, error) {
	if !segment.MatchString(host) || host == "." || host == ".." {
		return nil, fmt.Errorf("host id %q cannot stand in a certificate: want letters, digits, '.', '_' and '-'", host)
	}
	return &url.URL{Scheme: "spiffe", Host: trustDomain, Path: "/host/" + host}, nil
}

// hostsName begins the name of each root for certificates of hosts, and so the issuer of each of these certificates.
const hostsName = "Portcullis hosts "

// OfHosts reports whether a certificate is a root for certificates of hosts, or was signed by one. It looks at names alone: no
// certificate that such a root signed, of whichever service, is anything else.
func OfHosts(c *x509.Certificate) bool {
	return strings.HasPrefix(c.Subject.CommonName, hostsName) || strings.HasPrefix(c.Issuer.CommonName, hostsName)
}

// NewHosts makes a root for certificates of the hosts of a trust domain. Its
// constraint keeps relying parties from believing it about anything else.
func NewHosts(trustDomain string, now, until time.Time) (*Authority, error) {
	if err := CheckTrustDomain(trustDomain); err != nil {
		return nil, err
	}
	return newRoot("hosts of "+trustDomain, now, until.Sub(now), func(c *x509.Certificate) {
		c.Subject.CommonName = hostsName + c.SerialNumber.Text(16)[:8]
		c.Subject.Organization = []string{trustDomain}
		c.KeyUsage = x509.KeyUsageCertSign
		c.PermittedURIDomains, c.PermittedDNSDomainsCritical = []string{trustDomain}, true
	})
}

// IssueHost makes a certificate for the key of a host: a client of TLS, with one name
// and no other. It ends life after now.
func (a *Authority) IssueHost(trustDomain, host string, key *ecdsa.PublicKey, now time.Time, life time.Duration) (*x509.Certificate, error) {
	uri, err := HostURI(trustDomain, host)
	if err != nil {
		return nil, err
	}
	if until := now.Add(life); until.After(a.cert.NotAfter) {
		return nil, fmt.Errorf("the authority for hosts ends at %s, before a certificate made now would", a.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	tmpl, err := template("", now, life)
	if err != nil {
		return nil, err
	}
	tmpl.Subject, tmpl.NotBefore = pkix.Name{}, now.Add(-hostBackdate)
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature
	tmpl.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	tmpl.BasicConstraintsValid = true
	tmpl.URIs = []*url.URL{uri}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of host %s: %w", host, err)
	}
	return x509.ParseCertificate(der)
}

// HostOf verifies that a certificate is one of IssueHost by one of the roots, in force at now, and returns the host that it
// names.
func HostOf(c *x509.Certificate, roots *x509.CertPool, trustDomain string, now time.Time) (string, error) {
	if _, err := c.Verify(x509.VerifyOptions{
		Roots: roots, Intermediates: x509.NewCertPool(), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		return "", err
	}
	if c.IsCA || len(c.URIs) != 1 || len(c.DNSNames)+len(c.EmailAddresses)+len(c.IPAddresses) > 0 || len(c.Subject.Names) > 0 {
		return "", errors.New("not exactly the name of one host")
	}
	prefix := "spiffe://" + trustDomain + "/host/"
	host, ok := strings.CutPrefix(c.URIs[0].String(), prefix)
	if !ok || !segment.MatchString(host) {
		return "", fmt.Errorf("name %q: want %sHOST", c.URIs[0], prefix)
	}
	return host, nil
}

// Certificate is the root itself.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// KeyDER returns the private key as PKCS #8, to be sealed.
func (a *Authority) KeyDER() ([]byte, error) { return x509.MarshalPKCS8PrivateKey(a.key) }

// Parse puts a root together again.
func Parse(cert, key []byte) (*Authority, error) {
	c, err := x509.ParseCertificate(cert)
	if err != nil {
		return nil, fmt.Errorf("CA certificate: %w", err)
	}
	k, err := x509.ParsePKCS8PrivateKey(key)
	if err != nil {
		return nil, errors.New("CA key: it cannot be read") // its content must not be shown
	}
	own, ok := k.(*ecdsa.PrivateKey)
	if !ok || !own.PublicKey.Equal(c.PublicKey) {
		return nil, errors.New("CA key: not the one of the certificate")
	}
	return &Authority{cert: c, key: own}, nil
}

// String names the authority, and nothing of its key.
func (a *Authority) String() string { return "CA " + hex.EncodeToString(a.cert.SubjectKeyId) }

// Format implements fmt.Formatter, so that no verb shows the key.
func (a *Authority) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(a.String())) }

// LogValue implements slog.LogValuer.
func (a *Authority) LogValue() slog.Value { return slog.StringValue(a.String()) }
