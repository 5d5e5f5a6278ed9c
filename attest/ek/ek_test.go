package ek_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"portcullis/attest/attesttest"
	"portcullis/attest/ek"
)

// made returns the maker of a TPM, and the host that has it.
func made(t testing.TB) (*attesttest.Vendor, *attesttest.Host) {
	t.Helper()
	v, err := attesttest.NewVendor("Example TPM")
	if err != nil {
		t.Fatal(err)
	}
	h, err := v.NewHost("compute-01", 1)
	if err != nil {
		t.Fatal(err)
	}
	return v, h
}

func certificate(t testing.TB) []byte {
	t.Helper()
	_, h := made(t)
	return h.Certificate
}

func TestTrim(t *testing.T) {
	t.Parallel()
	cert := certificate(t)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for _, tc := range []struct {
		name string
		in   []byte
		ok   bool
	}{
		{"bare", cert, true},
		{"padded with 0xff", join(cert, bytes.Repeat([]byte{0xff}, 700)), true},
		{"padded with zeros", join(cert, make([]byte, 700)), true},
		{"old header", join([]byte{0x10, 0x01, 0x00, byte(len(cert) >> 8), byte(len(cert))}, cert), true},
		{"mixed padding", join(cert, []byte{0xff, 0x00}), false},
		{"other bytes", join(cert, []byte{1}), false},
		{"another certificate", join(cert, cert), false},
		{"not a sequence", []byte{0x02, 0x01, 0x00}, false},
		{"empty", nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := ek.Trim(tc.in)
			if tc.ok && (err != nil || !bytes.Equal(got, cert)) {
				t.Errorf("got %d bytes, %v; want the certificate", len(got), err)
			}
			if !tc.ok && !errors.Is(err, ek.ErrParse) {
				t.Errorf("got %v, want %v", err, ek.ErrParse)
			}
		})
	}
	for n := range cert {
		if _, err := ek.Trim(cert[:n]); err == nil {
			t.Errorf("accepted when cut at %d", n)
		}
	}
}

// TestROCA checks the fingerprint on moduli built like those of the flawed
// generator: a power of 65537 modulo the product of small primes.
func TestROCA(t *testing.T) {
	t.Parallel()
	m := big.NewInt(1)
	for p := int64(2); p < 200; p++ {
		if big.NewInt(p).ProbablyPrime(10) {
			m.Mul(m, big.NewInt(p))
		}
	}
	n := new(big.Int).Lsh(big.NewInt(1), 2047)
	n.Sub(n, new(big.Int).Mod(n, m))
	n.Add(n, m).Add(n, new(big.Int).Exp(big.NewInt(65537), big.NewInt(1234), m))
	if _, err := ek.RSA2048.Public(&rsa.PublicKey{N: n, E: 65537}); err != nil {
		t.Fatalf("the modulus does not fit the template: %v", err)
	}
	v, err := attesttest.NewVendor("Example TPM")
	if err != nil {
		t.Fatal(err)
	}
	der, err := v.Issue(attesttest.EKTemplate(0), &rsa.PublicKey{N: n, E: 65537})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ek.FromCertificate(ek.RSA2048, der); !errors.Is(err, ek.ErrWeak) {
		t.Errorf("got %v, want %v", err, ek.ErrWeak)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	if der, err = v.Issue(attesttest.EKTemplate(0), &key.PublicKey); err != nil {
		t.Fatal(err)
	}
	if _, err := ek.FromCertificate(ek.RSA2048, der); err != nil {
		t.Errorf("an honest key: %v", err)
	}
}

func TestPublicRefusesOtherKeys(t *testing.T) {
	t.Parallel()
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []ek.Kind{ek.P256, ek.RSA2048, "ecc-p521", ""} {
		if _, err := k.Public(&p384.PublicKey); !errors.Is(err, ek.ErrKind) {
			t.Errorf("a P-384 key as %q: got %v, want %v", k, err, ek.ErrKind)
		}
	}
	if _, err := ek.P384.Public(&p384.PublicKey); err != nil {
		t.Errorf("a P-384 key as P-384: %v", err)
	}
	//nolint:staticcheck // SA1019: only raw coordinates can make an invalid key
	if _, err := ek.P256.Public(&ecdsa.PublicKey{Curve: elliptic.P256(), X: big.NewInt(1), Y: big.NewInt(1)}); err == nil {
		t.Error("a point off the curve was accepted")
	}
}

// TestIssuersThatCostTime: a stranger without any TPM sends issuers whose keys take a
// second to verify with, or ever more of one name. They are refused before that; chains
// as makers have them are not.
func TestIssuersThatCostTime(t *testing.T) {
	t.Parallel()
	v, h := made(t)
	leaf, err := x509.ParseCertificate(h.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	forger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuer := func(serial int64, key any) []byte {
		der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: big.NewInt(serial), RawSubject: leaf.RawIssuer, IsCA: true, BasicConstraintsValid: true,
			NotBefore: attesttest.Epoch.AddDate(-1, 0, 0), NotAfter: attesttest.Epoch.AddDate(1, 0, 0),
		}, &x509.Certificate{RawSubject: leaf.RawIssuer}, key, forger)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	rsaKey := func(bits uint) *rsa.PublicKey {
		n := new(big.Int).Lsh(big.NewInt(1), bits-1)
		return &rsa.PublicKey{N: n.Add(n, big.NewInt(1)), E: 1<<31 - 1}
	}
	roots := x509.NewCertPool()
	roots.AddCert(v.Root())
	trust := ek.Trust{Roots: roots}
	for _, tt := range []struct {
		name, want string // want: in the error; "" none
		issuers    [][]byte
	}{
		{"an RSA key of 60000 bits", "RSA key of 60000 bits", [][]byte{v.Issuer().Raw, issuer(2, rsaKey(60000))}},
		{"one of 4097 bits", "RSA key of 4097 bits", [][]byte{v.Issuer().Raw, issuer(2, rsaKey(4097))}},
		{"three of one name", "more than 2 certificates of one name", [][]byte{issuer(2, rsaKey(2048)), issuer(3, rsaKey(2048)), issuer(4, rsaKey(2048))}},
		{"two of one name, of which one is right", "", [][]byte{issuer(2, rsaKey(4096)), v.Issuer().Raw}},
		{"the maker's", "", [][]byte{v.Issuer().Raw}},
	} {
		_, err := trust.Check(attesttest.Epoch, ek.P256, append([][]byte{h.Certificate}, tt.issuers...))
		if tt.want == "" && err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.want != "" && (!errors.Is(err, ek.ErrChain) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %v with %q", tt.name, err, ek.ErrChain, tt.want)
		}
	}
}

var oidEK = asn1.ObjectIdentifier{2, 23, 133, 8, 1}

// TestIssuersOfOtherCertificates: an intermediate CA that is for other certificates alone issues no EK certificate, nor
// does a CA below it. CAs of makers have no extended key usage, or that of EKs.
func TestIssuersOfOtherCertificates(t *testing.T) {
	t.Parallel()
	v, h := made(t)
	roots := x509.NewCertPool()
	roots.AddCert(v.Root())
	server := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }
	aik := func(c *x509.Certificate) { c.UnknownExtKeyUsage = []asn1.ObjectIdentifier{{2, 23, 133, 8, 3}} }
	for _, tt := range []struct {
		name     string
		cas      []func(*x509.Certificate) // below the maker's, the nearest to it first
		believed bool
	}{
		{"no usage", []func(*x509.Certificate){nil, nil}, true},
		{"that of EKs", []func(*x509.Certificate){func(c *x509.Certificate) { c.UnknownExtKeyUsage = []asn1.ObjectIdentifier{oidEK} }}, true},
		{"that of EKs and others", []func(*x509.Certificate){func(c *x509.Certificate) {
			server(c)
			c.UnknownExtKeyUsage = []asn1.ObjectIdentifier{{2, 23, 133, 8, 3}, oidEK}
		}}, true},
		{"any", []func(*x509.Certificate){func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} }}, true},
		{"servers", []func(*x509.Certificate){server}, false},
		{"attestation keys", []func(*x509.Certificate){aik}, false},
		{"below one for servers", []func(*x509.Certificate){server, nil}, false},
		{"for servers, below one without", []func(*x509.Certificate){nil, server}, false},
	} {
		for _, known := range []bool{false, true} {
			issuer, sent, pool := v, [][]byte{v.Issuer().Raw}, x509.NewCertPool()
			pool.AddCert(v.Issuer())
			for i, edit := range tt.cas {
				below, err := issuer.Below(fmt.Sprint("CA ", i), edit)
				if err != nil {
					t.Fatal(err)
				}
				issuer = below
				sent = append(sent, below.Issuer().Raw)
				pool.AddCert(below.Issuer())
			}
			cert, err := issuer.Issue(attesttest.EKTemplate(x509.KeyUsageKeyAgreement), &h.EK.PublicKey)
			if err != nil {
				t.Fatal(err)
			}
			trust, certs := ek.Trust{Roots: roots}, append([][]byte{cert}, sent...)
			if known {
				trust.Intermediates, certs = pool, [][]byte{cert}
			}
			_, err = trust.Check(attesttest.Epoch, ek.P256, certs)
			if tt.believed && err != nil || !tt.believed && (!errors.Is(err, ek.ErrChain) || !strings.Contains(err.Error(), "is not for EK certificates")) {
				t.Errorf("%s, known to the site %v: %v, want believed %v", tt.name, known, err, tt.believed)
			}
		}
	}
}

// TestUsagesOfOtherKeys: a certificate that is for signing, too, is no EK's.
func TestUsagesOfOtherKeys(t *testing.T) {
	t.Parallel()
	v, h := made(t)
	roots := x509.NewCertPool()
	roots.AddCert(v.Root())
	trust := ek.Trust{Roots: roots}
	for name, edit := range map[string]func(*x509.Certificate){
		"keyCertSign":  func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCertSign },
		"cRLSign":      func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageCRLSign },
		"codeSigning":  func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} },
		"timeStamping": func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping} },
		"OCSPSigning":  func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageOCSPSigning} },
		"":             func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageDataEncipherment },
	} {
		tmpl := attesttest.EKTemplate(x509.KeyUsageKeyAgreement)
		edit(tmpl)
		cert, err := v.Issue(tmpl, &h.EK.PublicKey)
		if err != nil {
			t.Fatal(err)
		}
		_, err = trust.Check(attesttest.Epoch, ek.P256, [][]byte{cert, v.Issuer().Raw})
		if name == "" && err != nil || name != "" && (!errors.Is(err, ek.ErrUsage) || !strings.Contains(err.Error(), name)) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func FuzzFromCertificate(f *testing.F) {
	cert := certificate(f)
	f.Add("ecc-p256", cert)
	f.Add("rsa-2048", append(bytes.Clone(cert), 0xff))
	f.Add("ecc-p384", []byte{0x30, 0x00})
	f.Fuzz(func(t *testing.T, kind string, der []byte) {
		e, err := ek.FromCertificate(ek.Kind(kind), der)
		if err == nil && (e.Digest == "" || len(e.Name) < 34 || len(e.Public) == 0) {
			t.Errorf("got %+v without error", e)
		}
	})
}
