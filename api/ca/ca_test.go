package ca_test

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"portcullis/api/ca"
)

func TestServerCertificate(t *testing.T) {
	now := time.Now()
	root, err := ca.New("Portcullis CA", now)
	if err != nil {
		t.Fatal(err)
	}
	rootPEM, err := root.PEM()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := root.IssueServer([]string{"fabric.example", "192.0.2.7"}, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tls.X509KeyPair(pair.Cert, pair.Key); err != nil {
		t.Fatalf("certificate and key do not belong together: %v", err)
	}
	chain, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(rootPEM.Cert)
	for _, tt := range []struct {
		name string
		opts x509.VerifyOptions
		ok   bool
	}{
		{"DNS name", x509.VerifyOptions{DNSName: "fabric.example", Roots: roots}, true},
		{"address", x509.VerifyOptions{DNSName: "192.0.2.7", Roots: roots}, true},
		{"other name", x509.VerifyOptions{DNSName: "other.example", Roots: roots}, false},
		{"other root", x509.VerifyOptions{DNSName: "fabric.example", Roots: x509.NewCertPool()}, false},
		{"after two years", x509.VerifyOptions{DNSName: "fabric.example", Roots: roots, CurrentTime: now.AddDate(2, 0, 1)}, false},
		{"as a client", x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := chain.Leaf.Verify(tt.opts); (err == nil) != tt.ok {
				t.Errorf("Verify = %v, want success %v", err, tt.ok)
			}
		})
	}
}

func TestIssueServerWantsNames(t *testing.T) {
	root, err := ca.New("Portcullis CA", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := root.IssueServer(nil, time.Now()); err == nil {
		t.Error("IssueServer without names succeeded")
	}
}
