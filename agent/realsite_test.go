package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"portcullis/agent"
	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/admission/admissiontest"
	"portcullis/api/apitest"
	"portcullis/api/attestation"
	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/limit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/tpm/tpmtest"
)

// realSite is the agent with a software TPM, and a service that really decides.
type realSite struct {
	t       *testing.T
	dev     *tpmtest.TPM
	service *admissiontest.Site
	config  agent.Config
	spy     *spy // between agent and TPM

	mu    sync.Mutex // guards what follows
	skew  time.Duration
	calls int
	// onCall is called after the service has processed each call. The answer is sent when onCall returns, but not if it
	// returns false.
	onCall func(n int, name string) bool
}

func newRealSite(t *testing.T) *realSite {
	t.Helper()
	s := &realSite{t: t, dev: tpmtest.New(t, tpmtest.Options{P256: true})}
	many := limit.Rate{PerSecond: 1e9, Burst: 1e9}
	s.service = admissiontest.NewWith(t, admissiontest.Host{ID: "compute-01", TPM: s.dev, Node: base}, func(o *admission.Options) {
		o.Policy.RequireLock, o.Now = false, s.now
		o.SourceRate, o.AttemptRate, o.HostRate = many, many, many
	})
	server := apitest.Start(t, &called{Service: s.service.Service().Attestation(), s: s}, func(o *api.Options) {
		o.Limits.Requests, o.Limits.Attestations = many, many
	})
	l := &lab{t: t, tpm: s.dev}
	dir := t.TempDir()
	s.config = agent.DefaultConfig()
	s.config.Service, s.config.CA, s.config.Host = server.URL, server.CAFile, "compute-01"
	s.config.Sysfs, s.config.Procfs = filepath.Join(dir, "sys"), filepath.Join(dir, "proc")
	s.config.VendorTools, s.config.FWCTL = false, filepath.Join(dir, "fwctl")
	s.config.StateDir, s.config.Timeout = filepath.Join(dir, "state"), 2*time.Minute
	l.config = s.config
	l.plant("28.43.1014")
	must(t, s.dev.PlantEventLog(s.config.Sysfs))
	s.spy = newSpy(t, s.dev.Device())
	s.config.TPM = s.spy.device()
	return s
}

func (s *realSite) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.skew)
}

// later lets time pass for the service.
func (s *realSite) later(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew += d
}

func (s *realSite) assign() { s.t.Helper(); s.service.Assign("compute-01") }

// bootWithRecord starts the host again with the record of the hand-over of the boot before.
func (s *realSite) bootWithRecord() {
	s.t.Helper()
	kept, err := os.ReadFile(s.record())
	must(s.t, err)
	s.boot()
	must(s.t, os.Mkdir(s.config.StateDir, 0o700))
	must(s.t, os.WriteFile(s.record(), kept, 0o600))
}

func (s *realSite) host() *v1.Host { s.t.Helper(); return s.service.Host("compute-01") }

func (s *realSite) sealed() bool { return !s.host().Status.Sealed.IsZero() }

// boot starts from the beginning: another boot of the host, an empty state folder and a new window. The service's clock is
// right again.
func (s *realSite) boot() {
	s.t.Helper()
	s.mu.Lock()
	s.skew = 0
	s.mu.Unlock()
	must(s.t, s.dev.PowerCycle(s.t.Context()))
	must(s.t, os.RemoveAll(s.config.StateDir))
	s.assign()
}

// provision runs the agent in this process.
func (s *realSite) provision(goal agent.Goal) error {
	s.t.Helper()
	return agent.Provision(s.t.Context(), agent.Options{Config: s.config, Version: "v1-test", Log: slog.New(slog.NewTextHandler(s.t.Output(), nil)), Goal: goal})
}

// admit plays the fabric.
func (s *realSite) admit() {
	s.t.Helper()
	_, err := s.service.Store.Update(s.t.Context(), func(tx *store.Tx) error {
		h, err := inventory.Hosts().Get(s.t.Context(), tx, "compute-01")
		if err != nil {
			return err
		}
		p := h.Value.Ports()[0]
		return records.Ports().Put(tx, p.GUID.String(), records.Port{Place: p.Cable, NodeGUID: base, HCACap: 32, SwitchCap: 32})
	})
	must(s.t, err)
	must(s.t, s.service.Service().Settle(s.t.Context()))
	grants, _, err := records.Grants().List(s.t.Context(), s.service.Store, "")
	must(s.t, err)
	_, err = s.service.Store.Update(s.t.Context(), func(tx *store.Tx) (err error) {
		for _, g := range grants {
			err = errors.Join(err, records.Memberships().Put(tx, g.Key, records.Membership{State: records.Applied, Revision: g.Modified}))
		}
		return err
	})
	must(s.t, err)
	must(s.t, s.service.Service().Settle(s.t.Context()))
}

// observe has f called for each call from now on, counted from 1. Nil ends that; the count goes on.
func (s *realSite) observe(f func(n int, name string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.onCall = f; f != nil {
		s.calls = 0
	}
}

// called is the service as agents call it.
type called struct {
	*attestation.Service // what agents do not call
	s                    *realSite
}

// now returns the service that answers at present.
func (c *called) now() *attestation.Service { return c.s.service.Service().Attestation() }

// Parts implements apitest.Served.
func (c *called) Parts() (api.Backend, api.Tenancy) {
	parts, clusters := apitest.Real{Service: c.s.service.Service()}.Parts()
	parts.Attestation = c
	return parts, clusters
}

var errCut = &refusal.Error{Code: "cut", Status: refusal.Unavailable, Detail: "cut"}

func answered[T any](c *called, name string, out *T, err error) (*T, error) {
	c.s.mu.Lock()
	c.s.calls++
	n, f := c.s.calls, c.s.onCall
	c.s.mu.Unlock()
	if f != nil && !f(n, name) {
		return nil, errCut
	}
	return out, err
}

func (c *called) OpenSession(ctx context.Context, req *attest.SessionRequest, source string) (*attest.Session, error) {
	out, err := c.now().OpenSession(ctx, req, source)
	return answered(c, "session", out, err)
}

func (c *called) SubmitEvidence(ctx context.Context, id string, channel []byte, ev *attest.Evidence) (*v1.AttestResult, error) {
	out, err := c.now().SubmitEvidence(ctx, id, channel, ev)
	return answered(c, "evidence", out, err)
}

func (c *called) SubmitSeal(ctx context.Context, id string, channel []byte, source string, ev *attest.SealEvidence) (*v1.SealResult, error) {
	out, err := c.now().SubmitSeal(ctx, id, channel, source, ev)
	return answered(c, "seal", out, err)
}

func (c *called) RenewSeal(ctx context.Context, token, id string) (*attest.Seal, error) {
	out, err := c.now().RenewSeal(ctx, token, id)
	return answered(c, "seal-nonce", out, err)
}

func (c *called) HostStatusByToken(ctx context.Context, token string) (*v1.Host, error) {
	out, err := c.now().HostStatusByToken(ctx, token)
	return answered(c, "status", out, err)
}
