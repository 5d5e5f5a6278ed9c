package main

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
)

// TestRevokeElsewhere: a certificate that is revoked on one machine stays revoked when
// another machine, with the key of the authority, revokes one later.
func TestRevokeElsewhere(t *testing.T) {
	t.Parallel()
	all := clusterOf(t, "a", "b")
	a, b := all[0], all[1]
	a.cluster("init", "--name", "a", "--peer", a.peer, "--client", a.client)
	a.start()
	a.invite(b, "invite")
	a.voting(2)
	a.cluster("client", "--name", "x", "--out", filepath.Join(t.TempDir(), "x"))
	a.cluster("revoke", "--name", "x")
	key, err := os.ReadFile(filepath.Join(a.dir, "cluster", "ca.key"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(b.dir, "cluster", "ca.key"), key, 0o600))
	b.cluster("client", "--name", "y", "--out", filepath.Join(t.TempDir(), "y"))
	b.cluster("revoke", "--name", "y")
	data, err := os.ReadFile(filepath.Join(b.dir, "cluster", "revoked.crl"))
	must(t, err)
	list, err := x509.ParseRevocationList(data)
	must(t, err)
	if n := len(list.RevokedCertificateEntries); n != 2 {
		t.Errorf("%d certificates are revoked, want those of x and y", n)
	}
}
