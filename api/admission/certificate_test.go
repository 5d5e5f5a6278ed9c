package admission

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"portcullis/api/audit"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// certifier signs for the hosts of a lab.
type certifier struct {
	l      *lab
	key    *ecdsa.PrivateKey
	serial int64
	fail   error
}

const certificateLife = 8 * time.Hour

func (c *certifier) Issue(_ context.Context, _ string, key *ecdsa.PublicKey) (*x509.Certificate, error) {
	if c.fail != nil {
		return nil, c.fail
	}
	c.serial++
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(c.serial), NotBefore: c.l.clock, NotAfter: c.l.clock.Add(certificateLife)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key, c.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func certifying(t *testing.T) (*lab, *certifier) {
	t.Helper()
	l := awaiting(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &certifier{l: l, key: key}
	l.options = func(o *Options) { o.Certifier = c }
	l.restart()
	return l, c
}

// sealWith hands a host over with a key, which change may alter.
func (l *lab) sealWith(host string, change func(*attest.HostKey)) (*v1.SealResult, error) {
	l.t.Helper()
	s := l.open(host)
	r, err := l.svc.SubmitEvidence(l.ctx(), s.ID, l.channel, l.answer(host, s))
	if err != nil {
		l.t.Fatal(err)
	}
	if !r.Seal.HostKey {
		l.t.Error("the service does not say that it certifies keys")
	}
	ev, err := l.hosts[host].Seal(s, r.Seal, l.channel)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, ev.HostKey, err = l.hosts[host].HostKey(s, r.Seal, l.channel); err != nil {
		l.t.Fatal(err)
	}
	if change != nil {
		change(ev.HostKey)
	}
	return l.svc.SubmitSeal(l.ctx(), s.ID, l.channel, "192.0.2.1", ev)
}

// certified is a lab whose host-1 holds a certificate.
func certifiedHost(t *testing.T) (*lab, []byte) {
	t.Helper()
	l, _ := certifying(t)
	r, err := l.sealWith("host-1", nil)
	if err != nil || len(r.Certificate) == 0 {
		t.Fatalf("seal: %+v, %v", r, err)
	}
	l.wantStatus("after the seal", "host-1", r.Certificate, true)
	return l, r.Certificate
}

func (l *lab) wantStatus(when, host string, der []byte, want bool) {
	l.t.Helper()
	h, err := l.svc.HostStatusByCertificate(l.ctx(), host, der)
	if want && (err != nil || h.ID != host) {
		l.t.Errorf("%s: %v, want the status of %s", when, err, host)
	}
	if !want && !refusal.IsKind(err, refusal.Refused) {
		l.t.Errorf("%s: %+v, %v; want it refused", when, h, err)
	}
}

// TestCertificateIsOneHosts: it is of the host it was given to, and no other.
func TestCertificateIsOneHosts(t *testing.T) {
	l, first := certifiedHost(t)
	r, err := l.sealWith("host-2", nil)
	if err != nil {
		t.Fatal(err)
	}
	l.wantStatus("own", "host-2", r.Certificate, true)
	l.wantStatus("of host-1 as host-2", "host-2", first, false)
	l.wantStatus("of host-2 as host-1", "host-1", r.Certificate, false)
	l.wantStatus("of a host that is not there", "host-9", first, false)
	l.wantStatus("altered", "host-1", append(first[:len(first)-1:len(first)-1], first[len(first)-1]^1), false)
	entries, _, err := audit.Entries().List(t.Context(), l.store, "")
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, e := range entries {
		if e.Value.Action == "evidence.seal" && strings.Contains(e.Value.Detail, "certificate ") {
			told++
		}
	}
	if told != 2 {
		t.Errorf("the audit log tells of %d certificates, want 2", told)
	}
}

// TestCertificateEnds: with whatever it was given for.
func TestCertificateEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(l *lab)
	}{
		{"with its time", func(l *lab) { l.clock = l.clock.Add(certificateLife) }},
		{"when the evidence is too old", func(l *lab) { l.clock = l.clock.Add(time.Hour + time.Second) }},
		{"when the evidence does not meet policy any more", func(l *lab) {
			for _, s := range attesttest.References() {
				l.trust(ended(s))
			}
			l.settle()
		}},
		{"with the release", func(l *lab) { l.must(l.svc.Release(l.ctx(), "alice", "host-1")) }},
		{"with a new assignment", func(l *lab) {
			l.must(l.svc.Assign(l.ctx(), "alice", "host-1", v1.Assignment{Cluster: "c1"}))
		}},
		{"with the inventory", func(l *lab) {
			l.importText("cables: [{guid: 0x0002c90300000101, switch: 0x10, port: 99}]", false)
		}},
		{"with newer evidence", func(l *lab) {
			l.hosts["host-1"].Boot.Reset++
			empty(l.hosts["host-1"])
			s := l.open("host-1")
			if _, err := l.svc.SubmitEvidence(l.ctx(), s.ID, l.channel, l.answer("host-1", s)); err != nil {
				l.t.Fatal(err)
			}
		}},
		{"with evidence of its TPM that is refused", func(l *lab) {
			if _, err := l.attestInThisBoot("host-1"); err == nil {
				l.t.Fatal("the boot of a hand-over attests again")
			}
		}},
		{"while two hosts claim a GUID", func(l *lab) {
			l.hosts["host-2"].Statement.HCAs[0].Ports[0].GUID = l.hosts["host-1"].Statement.HCAs[0].Ports[0].GUID
			if _, err := l.attest("host-2"); err == nil {
				l.t.Fatal("host-2 attests with a GUID of host-1")
			}
			if len(l.host("host-1").Status.Conflicts) == 0 {
				l.t.Fatal("host-1 is not held")
			}
		}},
		{"when the EK is denied", func(l *lab) {
			l.policy.Denied = map[string]bool{l.hosts["host-1"].EKDigest(): true}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, der := certifiedHost(t)
			c.do(l)
			l.wantStatus("afterwards", "host-1", der, false)
		})
	}
}

// TestStrangersDoNotEndCertificates: a stranger who knows a host's name and EK certificate causes refusals, and no more.
func TestStrangersDoNotEndCertificates(t *testing.T) {
	l, der := certifiedHost(t)
	s := l.open("host-1")
	ev := l.answer("host-1", s)
	ev.Proof[0] ^= 1
	_, err := l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, ev)
	wantRefusal(t, err, attest.ReasonProof)
	if l.host("host-1").Status.LastDenial == nil {
		t.Error("the refusal is not noted")
	}
	l.wantStatus("after a stranger was refused", "host-1", der, true)
	l.restart()
	l.wantStatus("after a restart of the service", "host-1", der, true)
}

// TestWrongHostKey: the whole seal is refused and used up, and the reason is noted.
func TestWrongHostKey(t *testing.T) {
	l, c := certifying(t)
	_, err := l.sealWith("host-1", func(k *attest.HostKey) { k.Holder = nil })
	wantRefusal(t, err, attest.ReasonParse)
	h := l.host("host-1")
	if !h.Status.Sealed.IsZero() || h.Status.LastDenial == nil || c.serial != 0 {
		t.Errorf("status %+v, %d certificates", h.Status, c.serial)
	}
	empty(l.hosts["host-1"])
	l.hosts["host-1"].Boot.Reset++
	_, err = l.sealWith("host-1", func(k *attest.HostKey) { k.Public[9] ^= 1 })
	wantRefusal(t, err, attest.ReasonHostKey)
}

// TestNoCertificate: a host that requests no certificate gets none. A host is admitted also when the service can issue
// none.
func TestNoCertificate(t *testing.T) {
	l, c := certifying(t)
	s := l.open("host-1")
	r, err := l.svc.SubmitEvidence(t.Context(), s.ID, l.channel, l.answer("host-1", s))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := l.seal("host-1", s, r)
	if err != nil || sealed.Certificate != nil || c.serial != 0 {
		t.Errorf("without a key: %+v, %v", sealed, err)
	}
	c.fail = errors.New("the authority is locked")
	if sealed, err = l.sealWith("host-2", nil); err != nil || sealed.Certificate != nil || l.host("host-2").Status.Sealed.IsZero() {
		t.Errorf("without an authority: %+v, %v", sealed, err)
	}
}
