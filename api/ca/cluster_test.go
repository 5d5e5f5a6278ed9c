package ca_test

import (
	"crypto/x509"
	"math/big"
	"testing"
	"time"

	"portcullis/api/ca"
)

// TestRevoke: each serial number stands once in a list, and a list has a higher number than the one that it replaces, also
// where the clock is behind that of the machine that made the other.
func TestRevoke(t *testing.T) {
	now := time.Now()
	a, err := ca.New("cluster", now)
	if err != nil {
		t.Fatal(err)
	}
	var before *big.Int
	for i, at := range []time.Time{now, now.Add(time.Minute), now.Add(-time.Hour), now.Add(-time.Hour)} {
		der, err := a.Revoke([]*big.Int{big.NewInt(9), big.NewInt(7), big.NewInt(9)}, before, at)
		if err != nil {
			t.Fatal(err)
		}
		list, err := x509.ParseRevocationList(der)
		if err != nil {
			t.Fatal(err)
		}
		if before != nil && list.Number.Cmp(before) <= 0 {
			t.Errorf("list %d has number %v, want one above %v", i, list.Number, before)
		}
		if e := list.RevokedCertificateEntries; len(e) != 2 || e[0].SerialNumber.Int64() != 7 || e[1].SerialNumber.Int64() != 9 {
			t.Errorf("list %d revokes %v, want 7 and 9", i, e)
		}
		before = list.Number
	}
}
