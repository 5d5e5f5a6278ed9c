// Package admissiontest makes services that really decide, over a store in memory, for tests of the parts around them:
// agents, the API, tools of others.
package admissiontest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"portcullis/api/admission"
	"portcullis/api/attestation"
	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/reference"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/vault"
)

const (
	operator = "alice"
	tenant   = "acme"
	cluster  = "train"
)

// Site is a service, and the store that it decides over.
type Site struct {
	Store *store.Store

	t       testing.TB
	options admission.Options
	service atomic.Pointer[admission.Service]
}

// New makes a service that knows no host and trusts no measured boot. Each of edit
// may change the options before, the store among them.
func New(t testing.TB, edit ...func(*admission.Options)) *Site {
	t.Helper()
	s := &Site{t: t, options: admission.Options{
		Store: store.New(memory.New(time.Now), ""), Policy: attest.DefaultPolicy(), Log: storetest.Quiet(),
		Root: Root(t),
	}}
	for _, f := range edit {
		f(&s.options)
	}
	s.Store = s.options.Store
	s.service.Store(admission.New(s.options))
	return s
}

// Host is a host with a software TPM and one adapter.
type Host struct {
	ID   string
	TPM  *tpmtest.TPM
	Node ib.GUID // of the adapter; its port has the next GUID
}

// NewWith makes a service that expects one host. Its policy trusts the maker of the TPM and demands locks, but nothing of
// firmware. The boot that the TPM measures is trusted, and the host is assigned to a cluster.
func NewWith(t testing.TB, h Host, edit ...func(*admission.Options)) *Site {
	t.Helper()
	policy := attest.DefaultPolicy()
	policy.Assurance = attest.AssuranceNone
	roots, err := h.TPM.RootsPEM()
	fatal(t, err)
	fatal(t, policy.AddCertificates(roots))
	s := New(t, append([]func(*admission.Options){func(o *admission.Options) { o.Policy = policy }}, edit...)...)
	Trust(t, s.Store, attesttest.References()[0])
	s.Expect(h.ID, fmt.Appendf(nil, `hosts:
- id: %s
  ek_sha256: %s
  hcas:
  - {node_guid: %v, ports: [{port: 1, guid: %v, cable: 0x10/1}]}
`, h.ID, h.TPM.EKDigest(), h.Node, h.Node+1))
	return s
}

// Root returns a root that seals the keys of sessions in a store.
func Root(t testing.TB) vault.Root {
	t.Helper()
	secret := sha256.Sum256([]byte("root of sessions"))
	r, err := vault.NewRoot("sessions", secret[:])
	fatal(t, err)
	return r
}

// Trust puts reference values of measured boots into a store.
func Trust(t testing.TB, s *store.Store, sets ...reference.Set) {
	t.Helper()
	_, err := s.Update(t.Context(), func(tx *store.Tx) (err error) {
		for i := range sets {
			err = errors.Join(err, attestation.References().Put(tx, attestation.ReferenceKey(sets[i].Class, sets[i].Version), sets[i]))
		}
		return err
	})
	fatal(t, err)
}

// Expect imports an inventory file and assigns one of its hosts to the first cluster
// of the first tenant.
func (s *Site) Expect(host string, file []byte) {
	s.t.Helper()
	ctx, svc := s.t.Context(), s.Service()
	_, err := svc.Inventory().ImportInventory(ctx, operator, []inventory.File{{Name: "hosts.yaml", Data: file}}, v1.RepairTicket{}, false)
	fatal(s.t, err)
	_, err = svc.Tenancy().CreateTenant(ctx, operator, v1.NewTenant{Name: tenant})
	fatal(s.t, err)
	_, err = svc.Tenancy().CreateCluster(ctx, operator, v1.NewCluster{Name: cluster, Tenant: tenant})
	fatal(s.t, err)
	s.Assign(host)
}

// Assign assigns a host to the cluster of [Site.Expect]. If it is there already, its window starts again.
func (s *Site) Assign(host string) {
	s.t.Helper()
	_, err := s.Service().Assign(s.t.Context(), operator, host, v1.Assignment{Cluster: cluster})
	fatal(s.t, err)
}

// Release takes a host from its cluster.
func (s *Site) Release(host string) {
	s.t.Helper()
	_, err := s.Service().Release(s.t.Context(), operator, host)
	fatal(s.t, err)
}

// Host returns the service's view of a host.
func (s *Site) Host(host string) *v1.Host {
	s.t.Helper()
	h, err := s.Service().Host(s.t.Context(), host)
	fatal(s.t, err)
	return h
}

// Service returns the service that answers at present. It is safe for concurrent use.
func (s *Site) Service() *admission.Service { return s.service.Load() }

// Restart makes another service over the same store, as a restart or a failover does.
func (s *Site) Restart() {
	o := s.options
	o.Store = s.Store.Twin()
	s.service.Store(admission.New(o))
}

func fatal(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
