package ek

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"slices"

	"golang.org/x/crypto/cryptobyte"
	cryptobyteasn1 "golang.org/x/crypto/cryptobyte/asn1"
)

var (
	oidSAN   = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidUsage = asn1.ObjectIdentifier{2, 23, 133, 8, 1} // tcg-kp-EKCertificate
)

// Trim cuts what follows the certificate's DER. TPMs store certificates in NV
// areas of fixed size and pad with 0x00 or 0xff; anything else behind it is
// an error. A very old 5-byte TCG header is dropped too.
func Trim(b []byte) ([]byte, error) {
	if len(b) > 5 && b[0] == 0x10 && b[1] == 0x01 && b[2] == 0x00 {
		b = b[5:]
	}
	var der cryptobyte.String
	rest := cryptobyte.String(b)
	if !rest.ReadASN1Element(&der, cryptobyteasn1.SEQUENCE) {
		return nil, fmt.Errorf("%w: does not begin with a whole SEQUENCE", ErrParse)
	}
	for i, c := range rest {
		if c != rest[0] || c != 0x00 && c != 0xff {
			return nil, fmt.Errorf("%w: byte 0x%02x at %d after its end is not padding", ErrParse, c, len(der)+i)
		}
	}
	return der, nil
}

// parse reads one certificate.
func parse(b []byte) (*x509.Certificate, error) {
	der, err := Trim(b)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrParse, err)
	}
	return cert, nil
}

// signing are usages of keys that sign. An EK decrypts, so that its certificate is for none of them.
var signing = map[x509.ExtKeyUsage]string{
	x509.ExtKeyUsageCodeSigning: "codeSigning", x509.ExtKeyUsageTimeStamping: "timeStamping", x509.ExtKeyUsageOCSPSigning: "OCSPSigning",
}

// checkUsage wants what the EK Credential Profile, 3.5, demands of an EK
// certificate: not a CA, the EK extended usage, and the key usage of its kind.
func checkUsage(cert *x509.Certificate) error {
	if cert.IsCA {
		return fmt.Errorf("%w: it is a CA certificate", ErrUsage)
	}
	if !slices.ContainsFunc(cert.UnknownExtKeyUsage, oidUsage.Equal) {
		return fmt.Errorf("%w: extended key usage %v is missing", ErrUsage, oidUsage)
	}
	for usage, name := range signing {
		if slices.Contains(cert.ExtKeyUsage, usage) {
			return fmt.Errorf("%w: extended key usage %s beside that of an EK, which signs nothing", ErrUsage, name)
		}
	}
	if cert.KeyUsage&(x509.KeyUsageCertSign|x509.KeyUsageCRLSign) != 0 {
		return fmt.Errorf("%w: key usage keyCertSign or cRLSign: it may issue certificates", ErrUsage)
	}
	want, name := x509.KeyUsageKeyEncipherment, "keyEncipherment"
	if _, ok := cert.PublicKey.(*ecdsa.PublicKey); ok {
		want, name = x509.KeyUsageKeyAgreement, "keyAgreement"
	}
	if cert.KeyUsage&want == 0 {
		return fmt.Errorf("%w: key usage %s is missing", ErrUsage, name)
	}
	return nil
}

// directoryName is the choice of GeneralName that EK certificates use (RFC
// 5280, 4.2.1.6).
const directoryName = 4

// takeSAN removes the mark that crypto/x509 puts on a critical subject
// alternative name, because it knows no directoryName; modelOf has read it. No
// other mark is removed.
func takeSAN(cert *x509.Certificate) {
	cert.UnhandledCriticalExtensions = slices.DeleteFunc(
		slices.Clone(cert.UnhandledCriticalExtensions), oidSAN.Equal)
}

// mayIssue reports an intermediate CA that may issue EK certificates: one whose extended key usages, if it has any, have
// that of EKs or any. Makers' own have none, or that of EKs alone.
func mayIssue(ca *x509.Certificate) bool {
	none := len(ca.ExtKeyUsage) == 0 && len(ca.UnknownExtKeyUsage) == 0
	return none || slices.Contains(ca.ExtKeyUsage, x509.ExtKeyUsageAny) || slices.ContainsFunc(ca.UnknownExtKeyUsage, oidUsage.Equal)
}
