package clientcert

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"slices"
	"strings"
	"time"

	"portcullis/api/ca"
)

// Bounds of what a client shows.
const (
	MaxShown = 4 // certificates: its own and three between it and the authority

	maxShown = 8 << 10 // bytes of one
	minRSA   = 2048    // bits
	maxRSA   = 4096
)

// bounded refuses certificates whose verification would take much work, and those that vouch for hosts.
func bounded(shown []*x509.Certificate) error {
	if len(shown) == 0 {
		return refuse("there is none", "show one")
	}
	if len(shown) > MaxShown {
		return refuse("%d certificates were shown, at most %d", "show the certificate and those between it and the authority, and not the authority itself", len(shown), MaxShown)
	}
	for _, c := range shown {
		if len(c.Raw) > maxShown {
			return refuse("a certificate of %d bytes was shown, at most %d", hintAnother, len(c.Raw), maxShown)
		}
		if ca.OfHosts(c) {
			return refuse("it is one of a host, or of an authority for hosts", "connect without it: what a host may do, it does as the host")
		}
		switch k := c.PublicKey.(type) {
		case *ecdsa.PublicKey, ed25519.PublicKey:
		case *rsa.PublicKey:
			if bits := k.N.BitLen(); bits < minRSA || bits > maxRSA {
				return refuse("a certificate with an RSA key of %d bits was shown: %d to %d are accepted", hintAnother, bits, minRSA, maxRSA)
			}
		default:
			return refuse("a certificate with a key was shown that is none of RSA, ECDSA and Ed25519", hintAnother)
		}
	}
	return nil
}

// checkLeaf refuses a certificate that is not in force, or no end of a chain (X509-SVID, sections 4.1 and 4.3).
func checkLeaf(c *x509.Certificate, now time.Time) error {
	switch {
	case now.After(c.NotAfter):
		return refuse("it ended at %s, and it is %s here", "have its authority issue the next one, and show that", stamp(c.NotAfter), stamp(now))
	case now.Before(c.NotBefore):
		return refuse("it is not good before %s, and it is %s here", "wait, or compare the clocks", stamp(c.NotBefore), stamp(now))
	case c.IsCA:
		return refuse("it is of an authority, and of no machine", hintAnother)
	case c.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0:
		return refuse("its key usage lets it sign certificates or lists of revoked ones", hintAnother)
	case c.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return refuse("its key usage has no digitalSignature", "have its authority add it")
	}
	return nil
}

// checkUse refuses a certificate that is not for clients of TLS: one for a SPIFFE ID may leave open what it is for (X509-SVID,
// section 4.4).
func checkUse(c *x509.Certificate, n *names) error {
	open := len(c.ExtKeyUsage)+len(c.UnknownExtKeyUsage) == 0
	if open && n.spiffe.TrustDomain != "" || slices.Contains(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
		return nil
	}
	return refuse("its extended key usage has no clientAuth", "have its authority add it")
}

// String names the owner.
func (n *names) String() string {
	if n.spiffe.TrustDomain != "" {
		return n.spiffe.String()
	}
	return strings.Join(n.dns, ", ")
}
