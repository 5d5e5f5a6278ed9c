package attest_test

import (
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
	a := attesttest.NewAttempt()
	a.Channel[0] = 1
	return &lab{t: t, vendor: a.Vendor, host: a.Host, policy: a.Policy, channel: a.Channel}
}

func (l *lab) begin() (*attest.Challenge, *attest.Session) {
	l.t.Helper()
	a := attesttest.Attempt{Vendor: l.vendor, Host: l.host, Policy: l.policy, Expected: l.host.Expected()}
	if err := a.Begin(); err != nil {
		l.t.Fatalf("begin: %v", err)
	}
	return a.Challenge, a.Session
}

func (l *lab) newHost(id string, n int) *attesttest.Host {
	l.t.Helper()
	h, err := l.vendor.NewHost(id, n)
	if err != nil {
		l.t.Fatal(err)
	}
	return h
}
