package main

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"portcullis/cmd/portcullisd/cluster"
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
	if n := revokedIn(t, data); n != 2 {
		t.Errorf("%d certificates are revoked, want those of x and y", n)
	}
	eventually(t, "an invitation by a with what b revoked", func() (bool, string) {
		file := filepath.Join(t.TempDir(), "invitation")
		a.cluster("invite", "--name", "c", "--peer", "https://127.0.0.1:1", "--client", "https://127.0.0.1:2", "--out", file)
		text, err := os.ReadFile(file)
		must(t, err)
		var in cluster.Invitation
		must(t, json.Unmarshal(text, &in))
		n := revokedIn(t, in.Revoked)
		return n == 2, fmt.Sprintf("%d are revoked", n)
	})
}

// revokedIn returns how many certificates a list revokes.
func revokedIn(t *testing.T, der []byte) int {
	t.Helper()
	list, err := x509.ParseRevocationList(der)
	must(t, err)
	return len(list.RevokedCertificateEntries)
}
