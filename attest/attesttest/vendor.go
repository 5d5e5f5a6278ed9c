// Package attesttest makes attestation evidence in software, for tests and for drills.
//
// A Vendor is a throw-away TPM vendor with a root and an issuing CA. A Host is a TPM 2.0 with only the parts that
// attestation needs: an EK with certificate, an AK, registers and a quote. Evidence from a fresh Host is valid, so that a
// test can break one thing and see that one thing refused.
package attesttest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// Vendor is a throw-away certificate authority for EKs.
type Vendor struct {
	root, issuer *x509.Certificate
	key          *ecdsa.PrivateKey // of issuer
}

// Epoch is the instant around which certificates of a Vendor are valid and
// that tests use as "now".
var Epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// NewVendor makes a root and an issuing CA under the name.
func NewVendor(name string) (*Vendor, error) {
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	root := caTemplate(name+" root", 1)
	rootCert, err := sign(root, root, &rootKey.PublicKey, rootKey)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	issuer, err := sign(caTemplate(name+" issuer", 2), rootCert, &key.PublicKey, rootKey)
	if err != nil {
		return nil, err
	}
	return &Vendor{root: rootCert, issuer: issuer, key: key}, nil
}

func caTemplate(name string, serial int64) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: Epoch.AddDate(-1, 0, 0), NotAfter: Epoch.AddDate(10, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
}

func sign(tmpl, parent *x509.Certificate, pub crypto.PublicKey, key crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, pub, key)
	if err != nil {
		return nil, fmt.Errorf("certificate %q: %w", tmpl.Subject, err)
	}
	return x509.ParseCertificate(der)
}

// PEM returns the root and the issuing certificate, as a site configures them.
func (v *Vendor) PEM() []byte {
	var b bytes.Buffer
	for _, c := range []*x509.Certificate{v.root, v.issuer} {
		// Encoding a certificate into memory cannot fail.
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	}
	return b.Bytes()
}

// Root and Issuer return the CA certificates.
func (v *Vendor) Root() *x509.Certificate   { return v.root }
func (v *Vendor) Issuer() *x509.Certificate { return v.issuer }

// Below returns a Vendor whose issuing CA is certified by that of v, as edit has its certificate. Edit may be nil.
func (v *Vendor) Below(name string, edit func(*x509.Certificate)) (*Vendor, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl := caTemplate(name, 4)
	if edit != nil {
		edit(tmpl)
	}
	issuer, err := sign(tmpl, v.issuer, &key.PublicKey, v.key)
	if err != nil {
		return nil, err
	}
	return &Vendor{root: v.root, issuer: issuer, key: key}, nil
}

// EKTemplate is an EK certificate as vendors make it: empty subject, critical
// SAN with a directory name, EK usage.
func EKTemplate(usage x509.KeyUsage) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(3),
		NotBefore:    Epoch.AddDate(-1, 0, 0), NotAfter: Epoch.AddDate(5, 0, 0),
		KeyUsage: usage, BasicConstraintsValid: true,
		UnknownExtKeyUsage: []asn1.ObjectIdentifier{{2, 23, 133, 8, 1}},
		ExtraExtensions:    []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 17}, Critical: true, Value: tpmSAN()}},
	}
}

// tpmSAN is a subject alternative name with the TPM's manufacturer, model and
// version in a directory name.
func tpmSAN() []byte {
	attribute := func(last int, value string) pkix.RelativeDistinguishedNameSET {
		return pkix.RelativeDistinguishedNameSET{{Type: asn1.ObjectIdentifier{2, 23, 133, 2, last}, Value: value}}
	}
	rdn, err := asn1.Marshal(pkix.RDNSequence{
		attribute(1, "id:54455354"), attribute(2, "attesttest"), attribute(3, "id:00010000"),
	})
	if err != nil {
		panic("attesttest: " + err.Error())
	}
	san, err := asn1.Marshal([]asn1.RawValue{{Class: asn1.ClassContextSpecific, Tag: 4, IsCompound: true, Bytes: rdn}})
	if err != nil {
		panic("attesttest: " + err.Error())
	}
	return san
}

// Issue signs an EK certificate.
func (v *Vendor) Issue(tmpl *x509.Certificate, key crypto.PublicKey) (der []byte, err error) {
	cert, err := sign(tmpl, v.issuer, key, v.key)
	if err != nil {
		return nil, err
	}
	return cert.Raw, nil
}
