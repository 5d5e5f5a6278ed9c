package tpmtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// makeVendor makes a vendor with P-256 keys in the folder of swtpm_localca, unless one is there: swtpm_localca by itself takes
// about a third of a second of CPU time for RSA keys.
func makeVendor(ca string) error {
	if exists(filepath.Join(ca, "signkey.pem")) {
		return nil
	}
	root, rootKey, err := certify(nil, nil, "swtpm-localca-rootca")
	if err != nil {
		return err
	}
	issuer, key, err := certify(root, rootKey, "swtpm-localca")
	if err != nil {
		return err
	}
	files := map[string][]byte{
		"swtpm-localca-rootca-cert.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw}),
		"issuercert.pem":                pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Raw}),
	}
	for name, k := range map[string]*ecdsa.PrivateKey{"swtpm-localca-rootca-privkey.pem": rootKey, "signkey.pem": key} {
		der, err := x509.MarshalPKCS8PrivateKey(k)
		if err != nil {
			return fmt.Errorf("software TPM vendor: %w", err)
		}
		files[name] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(ca, name), data, 0o600); err != nil {
			return fmt.Errorf("software TPM vendor: %w", err)
		}
	}
	return nil
}

// certify makes a CA with a key of its own. It signs itself if there is no parent.
func certify(parent *x509.Certificate, parentKey *ecdsa.PrivateKey, name string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("software TPM vendor %s: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("software TPM vendor %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC), // as swtpm_localca's
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, nil, fmt.Errorf("software TPM vendor %s: %w", name, err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("software TPM vendor %s: %w", name, err)
	}
	return made, key, nil
}
