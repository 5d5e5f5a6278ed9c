package clientcert

import (
	"crypto/x509"
	"encoding/asn1"
	"regexp"
	"strings"

	"golang.org/x/crypto/cryptobyte"
	cbasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

// names are those of a certificate that say who it is of. Either spiffe or dns is set.
type names struct {
	spiffe ID
	dns    []string // in small letters
}

// dnsName is a host name without a dot at its end and without wildcards, in small letters.
var dnsName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$`)

const maxDNS = 253

func isDNS(name string) bool { return len(name) <= maxDNS && dnsName.MatchString(name) }

// namesOf returns the names of a certificate. One with a URI of the scheme spiffe is an X509-SVID, and its DNS names are no names
// of its owner.
func namesOf(c *x509.Certificate) (n names, _ error) {
	uris, ok := urisOf(c)
	if !ok {
		return n, refuse("its subject alternative names can't be read", hintAnother)
	}
	for _, uri := range uris {
		if len(uri) < len(scheme)-2 || !strings.EqualFold(uri[:len(scheme)-2], "spiffe:") {
			continue
		}
		if len(uris) != 1 {
			return n, refuse("it has %d URIs: the certificate of a SPIFFE ID has one", "have its authority leave the others out", len(uris))
		}
		id, err := ParseID(uri)
		switch {
		case err != nil:
			return n, refuse("its SPIFFE ID %.128q is malformed: %v", "have its authority write it as the specification has it", uri, err)
		case id.Path == "":
			return n, refuse("its SPIFFE ID %s has no path: it is of a trust domain, and of none of its machines", hintAnother, id)
		}
		n.spiffe = id
		return n, nil
	}
	for _, name := range c.DNSNames {
		name = strings.ToLower(name)
		switch {
		case strings.Contains(name, "*"):
			return n, refuse("it is for %.128q: a wildcard names no machine", "have its authority issue one for the name of the machine", name)
		case isDNS(name):
			n.dns = append(n.dns, name)
		}
	}
	if len(n.dns) == 0 {
		return n, refuse("it has neither a SPIFFE ID nor a DNS name", "have its authority put one into its subject alternative names; the subject does not count")
	}
	return n, nil
}

// oidAltName is the extension with the subject alternative names (RFC 5280, section 4.2.1.6).
var oidAltName = asn1.ObjectIdentifier{2, 5, 29, 17}

// urisOf returns the URIs of a certificate to the byte: package x509 parses them, and two texts may become one.
func urisOf(c *x509.Certificate) (uris []string, ok bool) {
	for _, e := range c.Extensions {
		if !e.Id.Equal(oidAltName) {
			continue
		}
		der := cryptobyte.String(e.Value)
		var list cryptobyte.String
		if !der.ReadASN1(&list, cbasn1.SEQUENCE) || !der.Empty() {
			return nil, false
		}
		for !list.Empty() {
			var one cryptobyte.String
			var tag cbasn1.Tag
			if !list.ReadAnyASN1(&one, &tag) {
				return nil, false
			}
			if tag == cbasn1.Tag(6).ContextSpecific() { // uniformResourceIdentifier
				uris = append(uris, string(one))
			}
		}
	}
	return uris, true
}
