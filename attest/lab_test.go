package attest_test

import (
	"crypto/rand"
	"testing"

	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// lab is one host and a site that trusts its TPM's vendor.
type lab struct {
	t       testing.TB
	vendor  *attesttest.Vendor
	host    *attesttest.Host
	policy  *attest.Policy
	channel []byte
}

func newLab(t testing.TB) *lab {
	t.Helper()
	v, err := attesttest.NewVendor("Example TPM")
	if err != nil {
		t.Fatal(err)
	}
	h, err := v.NewHost("compute-01", 1)
	if err != nil {
		t.Fatal(err)
	}
	p := attest.DefaultPolicy()
	if err := p.AddCertificates(v.PEM()); err != nil {
		t.Fatal(err)
	}
	channel := make([]byte, attest.ExporterSize)
	channel[0] = 1
	return &lab{t: t, vendor: v, host: h, policy: p, channel: channel}
}

func (l *lab) begin() (*attest.Challenge, *attest.Session) {
	l.t.Helper()
	ch, s, err := attest.Begin(rand.Reader, attesttest.Epoch, l.host.Request(), l.host.Expected(), l.policy)
	if err != nil {
		l.t.Fatalf("begin: %v", err)
	}
	return ch, s
}

func (l *lab) newHost(id string, n int) *attesttest.Host {
	l.t.Helper()
	h, err := l.vendor.NewHost(id, n)
	if err != nil {
		l.t.Fatal(err)
	}
	return h
}
