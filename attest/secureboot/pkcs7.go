package secureboot

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
)

const maxCertificates = 16

var (
	oidSignedData   = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 2}
	oidIndirectData = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 311, 2, 1, 4}
	oidMessage      = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 4}
	oidSHA256       = asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}
	oidRSA          = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}
	oidRSASHA256    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 11}
)

// Structures of RFC 2315 and of Microsoft's Authenticode specification.
type (
	contentInfo struct {
		Type    asn1.ObjectIdentifier
		Content asn1.RawValue `asn1:"explicit,tag:0"`
	}
	signedData struct {
		Version      int
		Digests      asn1.RawValue `asn1:"set"`
		Content      contentInfo
		Certificates asn1.RawValue `asn1:"optional,tag:0"`
		CRLs         asn1.RawValue `asn1:"optional,tag:1"`
		Signers      []signerInfo  `asn1:"set"`
	}
	signerInfo struct {
		Version    int
		Signer     issuerSerial
		Digest     pkix.AlgorithmIdentifier
		Attributes asn1.RawValue `asn1:"optional,tag:0"`
		Algorithm  pkix.AlgorithmIdentifier
		Signature  []byte
		Unsigned   asn1.RawValue `asn1:"optional,tag:1"`
	}
	issuerSerial struct {
		Issuer asn1.RawValue
		Serial *big.Int
	}
	attribute struct {
		Type   asn1.ObjectIdentifier
		Values asn1.RawValue `asn1:"set"`
	}
	indirectData struct {
		Data   asn1.RawValue
		Digest struct {
			Algorithm pkix.AlgorithmIdentifier
			Digest    []byte
		}
	}
)

// signature is one Authenticode signature that verifies with its own certificate.
type signature struct {
	signer *x509.Certificate
	others []*x509.Certificate // that came along
}

// verifySignature checks that the signature is one of the digest, by a certificate in
// it. Whether that one is trusted is another question.
func verifySignature(der []byte, digest [sha256.Size]byte) (*signature, error) {
	var outer contentInfo
	if rest, err := asn1.Unmarshal(der, &outer); err != nil || len(bytes.Trim(rest, "\x00")) > 0 || !outer.Type.Equal(oidSignedData) {
		return nil, errors.New("is not a PKCS#7 SignedData")
	}
	var sd signedData
	if rest, err := asn1.Unmarshal(outer.Content.Bytes, &sd); err != nil || len(rest) > 0 {
		return nil, errors.New("its SignedData is malformed")
	}
	if len(sd.Signers) != 1 || !sd.Content.Type.Equal(oidIndirectData) {
		return nil, fmt.Errorf("has %d signers, or is not for an image: want one signer, and Authenticode", len(sd.Signers))
	}
	var about indirectData
	if rest, err := asn1.Unmarshal(sd.Content.Content.Bytes, &about); err != nil || len(rest) > 0 {
		return nil, errors.New("does not name the digest it is for")
	}
	if !about.Digest.Algorithm.Algorithm.Equal(oidSHA256) || !bytes.Equal(about.Digest.Digest, digest[:]) {
		return nil, errors.New("is for another image: sign this one")
	}
	var content asn1.RawValue
	if _, err := asn1.Unmarshal(sd.Content.Content.Bytes, &content); err != nil {
		return nil, errors.New("does not name the digest it is for")
	}
	certs, err := x509.ParseCertificates(sd.Certificates.Bytes)
	if err != nil || len(certs) == 0 || len(certs) > maxCertificates {
		return nil, fmt.Errorf("has %d certificates that can be read, want 1 to %d", len(certs), maxCertificates)
	}
	return sd.Signers[0].verify(certs, sha256.Sum256(content.Bytes))
}

// verify checks the signer's signature of the attributes, one of which is the digest
// of the content.
func (s *signerInfo) verify(certs []*x509.Certificate, content [sha256.Size]byte) (*signature, error) {
	if !s.Digest.Algorithm.Equal(oidSHA256) || !s.Algorithm.Algorithm.Equal(oidRSA) && !s.Algorithm.Algorithm.Equal(oidRSASHA256) {
		return nil, errors.New("is not RSA with SHA-256, which firmware requires")
	}
	attributes := bytes.Clone(s.Attributes.FullBytes)
	if len(attributes) == 0 {
		return nil, errors.New("has no signed attributes")
	}
	attributes[0] = asn1.TagSet | 0x20 // what is signed is a SET, RFC 2315, 9.3
	if !hasDigest(s.Attributes.Bytes, content) {
		return nil, errors.New("its attributes are for another content")
	}
	for i, c := range certs {
		if !bytes.Equal(c.RawIssuer, s.Signer.Issuer.FullBytes) || s.Signer.Serial == nil || c.SerialNumber.Cmp(s.Signer.Serial) != 0 {
			continue
		}
		if err := c.CheckSignature(x509.SHA256WithRSA, attributes, s.Signature); err != nil {
			return nil, fmt.Errorf("does not verify: %w", err)
		}
		return &signature{signer: c, others: append(certs[:i:i], certs[i+1:]...)}, nil
	}
	return nil, errors.New("lacks the certificate of its signer")
}

// hasDigest looks for the attribute messageDigest.
func hasDigest(b []byte, content [sha256.Size]byte) bool {
	for len(b) > 0 {
		var a attribute
		rest, err := asn1.Unmarshal(b, &a)
		if err != nil {
			return false
		}
		b = rest
		if !a.Type.Equal(oidMessage) {
			continue
		}
		var digest []byte
		rest, err = asn1.Unmarshal(a.Values.Bytes, &digest)
		return err == nil && len(rest) == 0 && bytes.Equal(digest, content[:])
	}
	return false
}

// chain returns the certificates from the signer up to the anchor, or nil if the anchor did not issue them. As firmware
// does, it ignores dates.
func (s *signature) chain(anchor *x509.Certificate) []*x509.Certificate {
	chain := []*x509.Certificate{s.signer}
	for range maxCertificates {
		last := chain[len(chain)-1]
		if last.Equal(anchor) {
			return chain
		}
		if issued(anchor, last) {
			return append(chain, anchor)
		}
		next := s.issuer(last)
		if next == nil {
			return nil
		}
		chain = append(chain, next)
	}
	return nil
}

func (s *signature) issuer(of *x509.Certificate) *x509.Certificate {
	for _, c := range s.others {
		if !c.Equal(of) && issued(c, of) {
			return c
		}
	}
	return nil
}

// issued reports that a CA signed a certificate.
func issued(ca, c *x509.Certificate) bool {
	return bytes.Equal(ca.RawSubject, c.RawIssuer) && c.CheckSignatureFrom(ca) == nil
}
