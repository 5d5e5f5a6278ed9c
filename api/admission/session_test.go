package admission

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/hostrecord"
	"portcullis/api/limit"
	"portcullis/api/refusal"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// awaiting returns a lab in which host-1 and host-2 may attest.
func awaiting(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, member.Open(t))
	l.addHosts(2)
	l.tenantWithClusters("c1")
	for _, h := range []string{"host-1", "host-2"} {
		if _, err := l.svc.Assign(t.Context(), "alice", h, v1.Assignment{Cluster: "c1"}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *lab) open(host string) *attest.Session {
	l.t.Helper()
	s, err := l.svc.OpenSession(l.ctx(), l.hosts[host].Request(), "192.0.2.1")
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

func (l *lab) answer(host string, s *attest.Session) *attest.Evidence {
	l.t.Helper()
	ev, err := l.hosts[host].Answer(s, l.channel)
	if err != nil {
		l.t.Fatal(err)
	}
	return ev
}

func wantRefusal(t *testing.T, err error, code attest.Reason) {
	t.Helper()
	var no *attest.Refusal
	if !errors.As(err, &no) || no.Code != code {
		t.Errorf("got %v, want a refusal with reason %s", err, code)
	}
}

func TestSessionIsSingleUse(t *testing.T) {
	for _, c := range []struct {
		name    string
		channel byte // of the first evidence
		want    attest.Reason
	}{
		{"after success", 0, ""},
		{"after failure", 9, attest.ReasonNonce},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := awaiting(t)
			s := l.open("host-1")
			good := l.answer("host-1", s)
			channel := bytes.Clone(l.channel)
			channel[0] = c.channel
			_, err := l.svc.SubmitEvidence(t.Context(), s.ID, channel, good)
			if c.want != "" {
				wantRefusal(t, err, c.want)
			} else if err != nil {
				t.Fatal(err)
			}
			_, err = l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, good)
			wantRefusal(t, err, attest.ReasonSession)
		})
	}
}

func TestSessionEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(l *lab)
		want attest.Reason
	}{
		{"by its expiry", func(l *lab) { l.clock = l.clock.Add(l.policy.SessionLife + time.Second) }, attest.ReasonSession},
		{"not by a newer one", func(l *lab) { l.open("host-1") }, ""},
		{"not by a wrong proof", func(l *lab) {
			s := l.open("host-1")
			ev := l.answer("host-1", s)
			ev.Proof[0] ^= 1
			_, err := l.svc.SubmitEvidence(l.ctx(), s.ID, l.channel, ev)
			if err == nil {
				l.t.Error("a wrong proof is taken")
			}
		}, ""},
		{"not by another instance's key", func(l *lab) {
			l.clock = l.clock.Add(time.Second)
			l.restart()
			l.open("host-2")
		}, ""},
		{"by release", func(l *lab) { l.must(l.svc.Release(l.ctx(), "alice", "host-1")) }, attest.ReasonSession},
		{"by a new assignment", func(l *lab) {
			l.must(l.svc.Assign(l.ctx(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
		}, attest.ReasonSession},
		{"not by a restart", func(l *lab) { l.restart() }, ""},
		{"not by another host's", func(l *lab) { l.open("host-2") }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := awaiting(t)
			s := l.open("host-1")
			ev := l.answer("host-1", s)
			c.do(l)
			_, err := l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, ev)
			if c.want != "" {
				wantRefusal(t, err, c.want)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func (l *lab) must(h *v1.Host, err error) *v1.Host {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
	return h
}

func TestEvidenceIsForItsSessionAndConnection(t *testing.T) {
	l := awaiting(t)
	mine, other := l.open("host-1"), l.open("host-2")
	ev := l.answer("host-1", mine)
	_, err := l.svc.SubmitEvidence(t.Context(), other.ID, l.channel, ev)
	wantRefusal(t, err, attest.ReasonProof)
	if d := l.host("host-2").Status.LastDenial; d == nil || d.Code != string(attest.ReasonProof) {
		t.Errorf("host-2's status shows denial %+v, want reason %s", d, attest.ReasonProof)
	}
	elsewhere := make([]byte, attest.ExporterSize)
	elsewhere[0] = 9
	_, err = l.svc.SubmitEvidence(t.Context(), mine.ID, elsewhere, ev)
	wantRefusal(t, err, attest.ReasonNonce)
}

func TestUnknownSessionsAndHosts(t *testing.T) {
	l := awaiting(t)
	for _, id := range []string{"", "x", "../hosts/host-1", "00000000000000000000000000000000"} {
		_, err := l.svc.SubmitEvidence(t.Context(), id, l.channel, &attest.Evidence{})
		wantRefusal(t, err, attest.ReasonSession)
	}
	for _, host := range []string{"", "nobody", "../c1", "HOST-1"} {
		req := l.hosts["host-1"].Request()
		req.Host = host
		_, err := l.svc.OpenSession(t.Context(), req, "192.0.2.1")
		wantRefusal(t, err, attestation.ReasonUnknownHost)
	}
	_, err := l.svc.OpenSession(t.Context(), nil, "192.0.2.1")
	wantRefusal(t, err, attest.ReasonRequest)
	s := l.open("host-1")
	_, err = l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, nil)
	var no *attest.Refusal
	if !errors.As(err, &no) {
		t.Errorf("no evidence at all: got %v, want a refusal", err)
	}
}

// A change of inventory between challenge and evidence must not slip through.
func TestInventoryChangesDuringSession(t *testing.T) {
	l := awaiting(t)
	s := l.open("host-1")
	ev := l.answer("host-1", s)
	if out := l.importText("cables: [{guid: 0x0002c90300000101, switch: 0x10, port: 99}]", false); out[:5] != "added" {
		t.Fatal(out)
	}
	_, err := l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, ev)
	wantRefusal(t, err, attest.ReasonSession)
}

func TestRateLimits(t *testing.T) {
	l := awaiting(t)
	l.options = func(o *Options) {
		o.AttemptRate = limit.Rate{PerSecond: 1.0 / 60, Burst: 2}
		o.SourceRate = limit.Rate{PerSecond: 1.0 / 60, Burst: 3}
	}
	l.restart()
	try := func(host, source string) error {
		_, err := l.svc.OpenSession(t.Context(), l.hosts[host].Request(), source)
		return err
	}
	for i, c := range []struct {
		host, source string
		limited      bool
	}{
		{"host-1", "192.0.2.1", false},
		{"host-1", "192.0.2.1", false},
		{"host-1", "192.0.2.1", true}, // the source's for this host
		{"host-2", "192.0.2.1", true}, // the source's for all
		{"host-2", "2001:db8::1", false},
		{"host-2", "2001:db8::2", false},
		{"host-1", "2001:db8::3", false},
		{"host-1", "2001:db8::4", true}, // one /64 is one source
	} {
		if err := try(c.host, c.source); refusal.IsKind(err, refusal.Limited) != c.limited {
			t.Errorf("attempt %d: got %v, want limited: %v", i+1, err, c.limited)
		}
	}
	l.clock = l.clock.Add(time.Minute)
	if err := try("host-1", "192.0.2.1"); err != nil {
		t.Errorf("after a minute: %v", err)
	}
}

func TestStatusToken(t *testing.T) {
	l := awaiting(t)
	submit := func(host string) string {
		t.Helper()
		s := l.open(host)
		r, err := l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, l.answer(host, s))
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusToken
	}
	first := submit("host-1")
	h, err := l.svc.HostStatusByToken(t.Context(), first)
	if err != nil || h.ID != "host-1" {
		t.Errorf("got %v, %v, want host-1", h, err)
	}
	second := submit("host-1")
	if second == first {
		t.Error("two tokens are the same")
	}
	for _, token := range []string{first, "", second + "x", hashOf(second)} {
		if _, err := l.svc.HostStatusByToken(t.Context(), token); !refusal.IsKind(err, refusal.Refused) {
			t.Errorf("token %q: got %v, want it refused", token, err)
		}
	}
	stored, _, err := hostrecord.Tokens().List(t.Context(), l.store, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(stored) != 1 || stored[0].Key != hashOf(second) {
		t.Errorf("stored tokens %v, want the hash of the newest alone", stored)
	}
	l.must(l.svc.Release(t.Context(), "alice", "host-1"))
	if _, err := l.svc.HostStatusByToken(t.Context(), second); !refusal.IsKind(err, refusal.Refused) {
		t.Errorf("token of a released host: got %v, want it refused", err)
	}
}

// A crash at any write of a session leaves nothing admitted by mistake and
// nothing stuck: the agent starts again and is accepted.
func TestSessionSurvivesCrashes(t *testing.T) {
	for _, moment := range []storetest.Moment{storetest.Before, storetest.After} {
		for n := 1; ; n++ {
			s, failing := member.OpenFailing(t)
			l := newLab(t, s)
			l.addHosts(1)
			l.tenantWithClusters("c1")
			l.must(l.svc.Assign(t.Context(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
			failing.FailAt(n, moment)
			_, err := l.attest("host-1")
			crashed := failing.Down()
			failing.Heal()
			l.restart()
			l.settle()
			if !crashed {
				if err != nil {
					t.Errorf("no crash: %v", err)
				}
				break
			}
			if err == nil {
				t.Errorf("crash at write %d (landed: %v) was not told", n, moment)
			}
			if p := l.host("host-1").Status.Phase; p != v1.PhaseAwaiting && p != v1.PhaseVerified {
				t.Errorf("crash at write %d (landed: %v): host is %s", n, moment, p)
			}
			if _, err := l.attest("host-1"); err != nil {
				t.Errorf("after a crash at write %d (landed: %v): %v", n, moment, err)
			}
		}
	}
}

func TestStoreFailureIsUnavailable(t *testing.T) {
	s, failing := member.OpenFailing(t)
	l := newLab(t, s)
	failing.FailAt(1, storetest.Before)
	_, err := l.svc.Tenancy().CreateTenant(t.Context(), "alice", v1.NewTenant{Name: "acme"})
	if !refusal.IsKind(err, refusal.Unavailable) || !errors.Is(err, storetest.ErrInjected) {
		t.Errorf("got %v, want unavailable with its cause", err)
	}
	if _, err := l.svc.Hosts(t.Context(), v1.HostQuery{}); !refusal.IsKind(err, refusal.Unavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
}

// hashOf is what the store has of a status token.
func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
