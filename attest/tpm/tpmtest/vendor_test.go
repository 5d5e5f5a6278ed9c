package tpmtest

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
)

// TestMakeVendor checks that the root of a vendor certifies its issuing CA, that a vendor stays, and that another folder has
// another one.
func TestMakeVendor(t *testing.T) {
	t.Parallel()
	vendor := func(dir string) (root, issuer *x509.Certificate) {
		t.Helper()
		if err := makeVendor(dir); err != nil {
			t.Fatal(err)
		}
		root, err := readPEM(filepath.Join(dir, "swtpm-localca-rootca-cert.pem"), x509.ParseCertificate)
		if err != nil {
			t.Fatal(err)
		}
		if issuer, err = readPEM(filepath.Join(dir, "issuercert.pem"), x509.ParseCertificate); err != nil {
			t.Fatal(err)
		}
		return root, issuer
	}
	dir := t.TempDir()
	root, issuer := vendor(dir)
	if err := issuer.CheckSignatureFrom(root); err != nil {
		t.Errorf("the issuing CA is not certified by the root: %v", err)
	}
	if err := root.CheckSignatureFrom(root); err != nil {
		t.Errorf("the root does not certify itself: %v", err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "signkey.pem"))
	if err != nil {
		t.Fatal(err)
	}
	again, _ := vendor(dir)
	after, err := os.ReadFile(filepath.Join(dir, "signkey.pem"))
	if err != nil || !bytes.Equal(before, after) || !again.Equal(root) {
		t.Errorf("the vendor of a folder changed (%v)", err)
	}
	other, foreign := vendor(t.TempDir())
	if other.Equal(root) || foreign.CheckSignatureFrom(root) == nil {
		t.Error("two folders have the same vendor")
	}
}
