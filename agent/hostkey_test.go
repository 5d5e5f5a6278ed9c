package agent_test

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	gotpm "github.com/google/go-tpm/tpm2"
	"github.com/google/go-tpm/tpm2/transport/linuxudstpm"

	"portcullis/agent"
	"portcullis/api"
	"portcullis/api/apitest"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// certifyingLab has a service that certifies keys of hosts.
func certifyingLab(t *testing.T) *lab {
	t.Helper()
	ca := apitest.NewAuthority(t)
	l := newLab(t, func(o *api.Options) { o.Hosts = ca })
	l.hosts = ca
	return l
}

// certify is the service's side of a key that comes with a seal, which was accepted.
func (l *lab) certify(sc *attest.SealChallenge, channel []byte, k *attest.HostKey) (*v1.SealResult, error) {
	out := &v1.SealResult{Host: "compute-01", Phase: v1.PhaseVerified}
	l.keys = append(l.keys, k)
	if k == nil || l.hosts == nil {
		return out, nil
	}
	key, no := attest.VerifyHostKey(sc, channel, k)
	if no != nil {
		l.sealed[len(l.sealed)-1] = no
		return nil, no
	}
	cert, err := l.hosts.Issue(l.t.Context(), out.Host, key)
	if err != nil {
		return nil, err
	}
	out.Certificate = cert.Raw
	if !l.forgets {
		l.backend.SetCertificate(out.Host, cert.Raw)
	}
	return out, nil
}

// kept is the certificate in the state folder.
func (l *lab) kept() *x509.Certificate {
	l.t.Helper()
	file := filepath.Join(l.config.StateDir, "hostkey.json")
	info, err := os.Stat(file)
	must(l.t, err)
	if info.Mode().Perm() != 0o600 {
		l.t.Errorf("%s has mode %v", file, info.Mode())
	}
	data, err := os.ReadFile(file)
	must(l.t, err)
	var kept struct {
		Certificate []byte `json:"certificate"`
	}
	must(l.t, json.Unmarshal(data, &kept))
	cert, err := x509.ParseCertificate(kept.Certificate)
	must(l.t, err)
	return cert
}

func (l *lab) status() (*v1.Host, error) {
	return agent.Status(l.t.Context(), &l.config, "v1-test")
}

// TestCertificate has a TPM's key certified, waits for the admission with it and
// without any token, and reads the status later; until it is revoked, or the host
// boots again.
func TestCertificate(t *testing.T) {
	t.Parallel()
	l := certifyingLab(t)
	l.after = func() {}
	taken := make(chan struct{})
	l.onLog = func(msg string) {
		switch msg {
		case "certificate of this host":
			l.backend.SetStatusToken(l.lastToken(), "nobody")
		case "the service takes the certificate of this host":
			close(taken)
			l.setPhase(v1.PhaseAdmitted)
		}
	}
	must(t, l.provision())
	select {
	case <-taken:
	default:
		t.Error("the certificate was not used")
	}
	if c := l.kept(); len(c.URIs) != 1 || c.URIs[0].String() != "spiffe://fabric.example/host/compute-01" {
		t.Errorf("certificate for %v", c.URIs)
	}
	for range 3 { // nothing may be left in the TPM, which has three places
		if h, err := l.status(); err != nil || h.Status.Phase != v1.PhaseAdmitted {
			t.Fatalf("status: %+v, %v", h, err)
		}
	}
	l.setPhase(v1.PhaseQuarantined)
	if h, err := l.status(); err != nil || agent.Withdrawn(h) == nil {
		t.Errorf("withdrawn: %+v, %v", h, err)
	}
	der := l.kept().Raw
	l.backend.SetCertificate("compute-01", nil)
	_, err := l.status()
	if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Status != 401 {
		t.Errorf("revoked: %v, want 401", err)
	}
	l.backend.SetCertificate("compute-01", der)
	other := l.config
	other.Host = "compute-02"
	if h, err := agent.Status(t.Context(), &other, "v1-test"); h != nil || err != nil {
		t.Errorf("as another host: %+v, %v", h, err)
	}
	must(t, l.tpm.PowerCycle(t.Context()))
	if h, err := l.status(); err == nil {
		t.Errorf("in the next boot: %+v", h)
	}
}

// TestCertificateNotTaken: whatever is wrong with the certificate, the status token
// goes on.
func TestCertificateNotTaken(t *testing.T) {
	t.Parallel()
	l := certifyingLab(t)
	l.forgets = true // the certificate does not stand in the host's record
	must(t, l.provision())
	l.kept()
}

// TestNoCertificate: a host that shall have none asks for none, and one whose TPM makes
// no key is admitted without.
func TestNoCertificate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		do   func(t *testing.T, l *lab)
	}{
		{"by configuration", func(_ *testing.T, l *lab) { l.config.Certificate = false }},
		{"owner hierarchy with a password", func(t *testing.T, l *lab) {
			raw, err := linuxudstpm.Open(l.tpm.Device()[len("unix:"):])
			must(t, err)
			_, err = gotpm.HierarchyChangeAuth{AuthHandle: gotpm.TPMRHOwner, NewAuth: gotpm.TPM2BAuth{Buffer: []byte("tenant")}}.Execute(raw)
			must(t, errors.Join(err, raw.Close()))
		}},
		{"service without certificates", func(_ *testing.T, l *lab) { l.hosts = nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := certifyingLab(t)
			tt.do(t, l)
			must(t, l.provision())
			if len(l.keys) != 1 || l.keys[0] != nil {
				t.Errorf("keys sent: %v", l.keys)
			}
			if h, err := l.status(); h != nil || err != nil {
				t.Errorf("status: %+v, %v", h, err)
			}
		})
	}
}

// TestCertificateOfAResumedHandOver: a run that goes on where another was cut off brings
// a key as well, and only one place of three is taken in the TPM.
func TestCertificateOfAResumedHandOver(t *testing.T) {
	t.Parallel()
	l := certifyingLab(t)
	seal := l.backend.OnSeal
	l.backend.OnSeal = func(id string, channel []byte, ev *attest.SealEvidence) (*v1.SealResult, error) {
		return nil, errors.New("the service ends")
	}
	l.config.Timeout = 2 * time.Second
	if err := l.provision(); err == nil {
		t.Fatal("a host was handed over without the service")
	}
	l.backend.OnSeal = seal
	l.config.Timeout = 30 * time.Second
	l.setPhase(v1.PhaseVerified, v1.Guard{Name: "sealed"})
	l.after = func() {}
	l.onLog = func(msg string) {
		if msg == "certificate of this host" {
			l.setPhase(v1.PhaseAdmitted)
		}
	}
	must(t, l.provision())
	if h, err := l.status(); err != nil || h.Status.Phase != v1.PhaseAdmitted {
		t.Errorf("status: %+v, %v", h, err)
	}
}
