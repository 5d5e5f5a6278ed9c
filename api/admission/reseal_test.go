package admission

import (
	"context"
	"errors"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/hostrecord"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

func wantClosed(t *testing.T, err error) {
	t.Helper()
	var e *refusal.Error
	if !errors.As(err, &e) || e.Code != v1.CodeSealClosed || !refusal.IsKind(err, refusal.Conflict) {
		t.Errorf("got %v, want a conflict %s", err, v1.CodeSealClosed)
	}
}

func wantUnknownToken(t *testing.T, err error) {
	t.Helper()
	if !refusal.IsKind(err, refusal.Refused) {
		t.Errorf("got %v, want the token refused", err)
	}
}

func wantCode(l *lab, err error, want attest.Reason) {
	l.t.Helper()
	if no, ok := errors.AsType[*attest.Refusal](err); !ok || no.Code != want {
		l.t.Fatalf("got %v, want %s", err, want)
	}
}

// TestSealIsAskedForAgain: a host whose seal did not come through gets another
// nonce, and is sealed with it; the service may have been another one meanwhile.
func TestSealIsAskedForAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(l *lab, s *attest.Session, r *v1.AttestResult)
		same bool // the first nonce is still good, and given again
	}{
		{"the answer to the evidence was read, and nothing more happened", func(*lab, *attest.Session, *v1.AttestResult) {}, true},
		{"the nonce grew old", func(l *lab, _ *attest.Session, _ *v1.AttestResult) {
			l.clock = l.clock.Add(l.policy.SealLife + time.Minute)
		}, false},
		{"the nonce will soon be too old", func(l *lab, _ *attest.Session, _ *v1.AttestResult) {
			l.clock = l.clock.Add(l.policy.SealLife - time.Second)
		}, false},
		{"a stranger sent a seal that no TPM signed", func(l *lab, s *attest.Session, _ *v1.AttestResult) {
			_, err := l.svc.SubmitSeal(l.ctx(), s.ID, l.channel, "192.0.2.1", &attest.SealEvidence{Quote: []byte{1}, Signature: []byte{1}})
			wantCode(l, err, attest.ReasonParse)
		}, true},
		{"the service ended after it had used it up", func(l *lab, s *attest.Session, _ *v1.AttestResult) {
			l.useSealUp(s)
			l.restart()
		}, false},
		{"another service took over", func(l *lab, _ *attest.Session, _ *v1.AttestResult) {
			l.store = l.store.Twin()
			l.restart()
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, s, r := evidenced(t)
			l.hosts["host-1"].Cap()
			c.do(l, s, r)
			next, err := l.svc.RenewSeal(t.Context(), r.StatusToken, s.ID)
			if err != nil {
				t.Fatal(err)
			}
			if same := string(next.Nonce) == string(r.Seal.Nonce); same != c.same || !next.Expires.After(l.clock) {
				t.Errorf("got the first nonce: %t, want %t; expires %v", same, c.same, next.Expires)
			}
			if n := l.audited("evidence.seal-nonce"); (n == 1) == c.same {
				t.Errorf("%d further nonces in the audit log", n)
			}
			again, err := l.svc.RenewSeal(t.Context(), r.StatusToken, s.ID)
			if err != nil || string(again.Nonce) != string(next.Nonce) {
				t.Errorf("one that is good is not given again: %v", err)
			}
			ev, err := l.hosts["host-1"].SealQuote(s, next, l.channel, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.svc.SubmitSeal(t.Context(), s.ID, l.channel, "192.0.2.1", ev); err != nil {
				t.Fatal(err)
			}
			if l.host("host-1").Status.Sealed.IsZero() {
				t.Error("not sealed")
			}
			_, err = l.svc.RenewSeal(t.Context(), r.StatusToken, s.ID) // it is sealed
			wantClosed(t, err)
			if history, err := store.Optional(attestation.Boots().Get(t.Context(), l.store, l.hosts["host-1"].EKDigest())); err != nil || history.Sealed == nil {
				t.Errorf("the boot is not spent: %+v, %v", history, err)
			}
		})
	}
}

// TestSealIsNotAskedForAgain: each is tried with an old nonce that would have to
// be replaced.
func TestSealIsNotAskedForAgain(t *testing.T) {
	closed, unknown := wantClosed, wantUnknownToken
	for _, c := range []struct {
		name string
		do   func(l *lab, s *attest.Session, r *v1.AttestResult) (token, session string)
		want func(*testing.T, error)
	}{
		{"without a token", func(_ *lab, s *attest.Session, _ *v1.AttestResult) (string, string) { return "", s.ID }, unknown},
		{"with another host's token", func(l *lab, s *attest.Session, _ *v1.AttestResult) (string, string) {
			o := l.open("host-2")
			r, err := l.svc.SubmitEvidence(l.ctx(), o.ID, l.channel, l.answer("host-2", o))
			l.must(nil, err)
			return r.StatusToken, s.ID
		}, closed},
		{"of another host's session", func(l *lab, _ *attest.Session, r *v1.AttestResult) (string, string) {
			o := l.open("host-2")
			_, err := l.svc.SubmitEvidence(l.ctx(), o.ID, l.channel, l.answer("host-2", o))
			l.must(nil, err)
			return r.StatusToken, o.ID
		}, closed},
		{"of no session", func(_ *lab, _ *attest.Session, r *v1.AttestResult) (string, string) { return r.StatusToken, "../x" }, closed},
		{"after newer evidence", func(l *lab, s *attest.Session, r *v1.AttestResult) (string, string) {
			o := l.open("host-1")
			_, err := l.svc.SubmitEvidence(l.ctx(), o.ID, l.channel, l.answer("host-1", o))
			l.must(nil, err)
			return r.StatusToken, s.ID
		}, unknown},
		{"the older session, with the token of newer evidence", func(l *lab, s *attest.Session, _ *v1.AttestResult) (string, string) {
			o := l.open("host-1")
			r, err := l.svc.SubmitEvidence(l.ctx(), o.ID, l.channel, l.answer("host-1", o))
			l.must(nil, err)
			return r.StatusToken, s.ID
		}, closed},
		{"after the release", func(l *lab, s *attest.Session, r *v1.AttestResult) (string, string) {
			l.must(l.svc.Release(l.ctx(), "alice", "host-1"))
			return r.StatusToken, s.ID
		}, unknown},
		{"after a new assignment", func(l *lab, s *attest.Session, r *v1.AttestResult) (string, string) {
			l.must(l.svc.Assign(l.ctx(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
			return r.StatusToken, s.ID
		}, unknown},
		{"after the inventory changed", func(l *lab, s *attest.Session, r *v1.AttestResult) (string, string) {
			l.importText("cables: [{guid: 0x0002c90300000101, switch: 0x10, port: 99}]", false)
			return r.StatusToken, s.ID
		}, closed},
		{"after the provisioning window", func(l *lab, s *attest.Session, r *v1.AttestResult) (string, string) {
			l.clock = l.clock.Add(time.Hour)
			return r.StatusToken, s.ID
		}, closed},
		{"when the evidence is too old", func(l *lab, s *attest.Session, r *v1.AttestResult) (string, string) {
			l.options = func(o *Options) { o.EvidenceAge = 20 * time.Minute }
			l.restart()
			l.clock = l.clock.Add(21 * time.Minute)
			return r.StatusToken, s.ID
		}, closed},
		{"when the host is held", func(l *lab, s *attest.Session, r *v1.AttestResult) (string, string) {
			l.hosts["host-2"].Statement.HCAs = l.hosts["host-1"].Statement.HCAs
			_, err := l.attest("host-2")
			wantCode(l, err, attestation.ReasonConflict)
			return r.StatusToken, s.ID
		}, closed},
		{"after the TPM has shown another boot", func(l *lab, s *attest.Session, r *v1.AttestResult) (string, string) {
			l.hosts["host-1"].Boot.Reset++
			_, err := l.seal("host-1", s, r)
			wantCode(l, err, attest.ReasonSeal)
			return r.StatusToken, s.ID
		}, closed},
		{"after the TPM has shown another register", func(l *lab, s *attest.Session, r *v1.AttestResult) (string, string) {
			l.hosts["host-1"].Extend(4, make([]byte, 32))
			_, err := l.seal("host-1", s, r)
			wantCode(l, err, attest.ReasonSeal)
			return r.StatusToken, s.ID
		}, closed},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, s, r := evidenced(t)
			token, session := c.do(l, s, r)
			l.clock = l.clock.Add(l.policy.SealLife)
			before := l.audited("evidence.seal-nonce")
			_, err := l.svc.RenewSeal(t.Context(), token, session)
			c.want(t, err)
			if n := l.audited("evidence.seal-nonce"); n != before {
				t.Errorf("%d further nonces in the audit log, %d before", n, before)
			}
		})
	}
}

// TestRenewalsAreBounded: a host that uses up its renewals gets no more, and a renewed challenge is no weaker than the
// first.
func TestRenewalsAreBounded(t *testing.T) {
	l, s, r := evidenced(t)
	old, err := l.hosts["host-1"].Seal(s, r.Seal, l.channel)
	if err != nil {
		t.Fatal(err)
	}
	use := func() error {
		_, err := l.svc.SubmitSeal(t.Context(), s.ID, l.channel, "192.0.2.1", old) // a replay of the first nonce's
		return err
	}
	l.clock = l.clock.Add(l.policy.SealLife + time.Second)
	wantRefusal(t, use(), attest.ReasonSession)
	for i := range maxRenewals {
		if i > 0 {
			wantRefusal(t, use(), attest.ReasonNonce)
			l.useSealUp(s)
		}
		if _, err := l.svc.RenewSeal(t.Context(), r.StatusToken, s.ID); err != nil {
			t.Fatalf("renewal %d: %v", i+1, err)
		}
	}
	wantRefusal(t, use(), attest.ReasonNonce)
	l.useSealUp(s)
	_, err = l.svc.RenewSeal(t.Context(), r.StatusToken, s.ID)
	wantClosed(t, err)
	l.fabric.place(t, l.ports("host-1")...)
	l.settle()
	l.wantOwners("after seals that were refused")
	if n := l.audited("evidence.seal-nonce"); n != maxRenewals {
		t.Errorf("%d further nonces in the audit log, want %d", n, maxRenewals)
	}
}

// maxRenewals is how often a seal is asked for again.
const maxRenewals = 32

// useSealUp deletes the challenge of a seal, as the host's own answer does.
func (l *lab) useSealUp(s *attest.Session) {
	l.t.Helper()
	number := s.ID[:32]
	l.must(nil, l.svc.update(l.ctx(), func(tx *store.Tx) error {
		_, err := hostrecord.Seals().Get(l.ctx(), tx, number)
		hostrecord.Seals().Delete(tx, number)
		return err
	}))
}

// leases counts those that a store is asked for.
type leases struct {
	store.Backend
	granted int
}

func (b *leases) NewLease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	b.granted++
	return b.Backend.NewLease(ctx, ttl)
}

// TestAskingForASealTakesNoLeases: the store keeps nothing for a host that asks for what
// it has, or does not get, however often.
func TestAskingForASealTakesNoLeases(t *testing.T) {
	l, s, r := evidenced(t)
	counted := &leases{Backend: l.store.Backend()}
	l.store = l.store.Over(counted)
	l.restart()
	if _, err := l.svc.RenewSeal(t.Context(), r.StatusToken, s.ID); err != nil {
		t.Fatal(err)
	}
	_, err := l.svc.RenewSeal(t.Context(), r.StatusToken, "of-no-evidence")
	wantClosed(t, err)
	if counted.granted != 0 {
		t.Errorf("%d leases were taken for nothing", counted.granted)
	}
	l.clock = l.clock.Add(l.policy.SealLife)
	if _, err := l.svc.RenewSeal(t.Context(), r.StatusToken, s.ID); err != nil || counted.granted != 1 {
		t.Errorf("for another nonce %d leases were taken (%v), want one", counted.granted, err)
	}
}
