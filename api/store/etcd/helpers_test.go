package etcd_test

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"portcullis/api/ca"
	"portcullis/api/store/etcd"
)

// eventually calls f until it returns no error.
func eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s did not come about: %v", what, err)
		}
	}
}

// withCA returns the TLS configuration of r, but with one authority that is trusted.
func withCA(t testing.TB, r etcd.Remote, a *ca.Authority) *tls.Config {
	t.Helper()
	p, err := a.PEM()
	if err != nil {
		t.Fatal(err)
	}
	cfg := r.TLS.Clone()
	cfg.RootCAs = x509.NewCertPool()
	cfg.RootCAs.AppendCertsFromPEM(p.Cert)
	return cfg
}

func keyPair(p ca.Pair) (tls.Certificate, error) { return tls.X509KeyPair(p.Cert, p.Key) }

func clientPrefix() clientv3.OpOption { return clientv3.WithPrefix() }
