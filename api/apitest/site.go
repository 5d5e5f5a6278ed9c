package apitest

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/admission/admissiontest"
	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/limit"
	"portcullis/api/plan/found"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// Importer is the actor who imports and assigns hosts for tests.
const Importer = "alice"

// Site is the real services over a store in memory. Its hosts have TPMs in software. It has no fabric: Place and Program write what
// the Subnet Manager's role reports.
type Site struct {
	*admissiontest.Site

	t      testing.TB
	faults *faults
	vendor *attesttest.Vendor
	hosts  map[string]*attesttest.Host
	joined bool // the cluster exists
}

// Cluster is the cluster that Join assigns hosts to, and Tenant its tenant.
const (
	Cluster = "train"
	Tenant  = "acme"
)

// NewSite makes services that know no host, whose limits of attestations no test reaches. Each of edit may change the
// options before, but not the store.
func NewSite(t testing.TB, edit ...func(*admission.Options)) *Site {
	t.Helper()
	s := &Site{t: t, faults: &faults{Backend: memory.New(time.Now)}, hosts: map[string]*attesttest.Host{}}
	var err error
	s.vendor, err = attesttest.NewVendor("Example TPM")
	s.fatal(err)
	many := limit.Rate{PerSecond: 1e9, Burst: 1e9}
	prepare := func(o *admission.Options) {
		o.Store, o.SourceRate, o.AttemptRate, o.HostRate = store.New(s.faults, ""), many, many, many
		s.fatal(o.Policy.AddCertificates(s.vendor.PEM()))
	}
	s.Site = admissiontest.New(t, append([]func(*admission.Options){prepare}, edit...)...)
	return s
}

func (s *Site) fatal(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// Parts implements Served.
func (s *Site) Parts() (api.Backend, api.Tenancy) { return Real{s.Service()}.Parts() }

// Planner returns what makes plans from the store.
func (s *Site) Planner() api.Planner { return found.Planner{Store: s.Store} }

// Fail has every later read and write of the store fail with err; nil ends that.
func (s *Site) Fail(err error) { s.faults.fail(err) }

// Work returns what was asked of the store since it was called last, an entry for each call.
func (s *Site) Work() []string { return s.faults.work() }

// Actors returns who made each change in the audit log, in order.
func (s *Site) Actors() (actors []string) {
	s.t.Helper()
	page, err := audit.Book{Store: s.Store}.List(s.t.Context(), v1.AuditQuery{Limit: v1.MaxPage})
	s.fatal(err)
	for i := range page.Items {
		actors = append(actors, page.Items[i].Actor)
	}
	return actors
}

// Register imports hosts as Inventory describes them.
func (s *Site) Register(ids ...string) { s.t.Helper(); s.Import(s.Inventory(ids...)) }

// Inventory makes hosts, and returns the file that describes them. Each has one adapter of two ports, which are cabled to the
// switches from 0x1000 on, 16 hosts to a switch. Its rack is named after that switch.
func (s *Site) Inventory(ids ...string) string {
	s.t.Helper()
	var y strings.Builder
	y.WriteString("hosts:\n")
	for _, id := range ids {
		n := len(s.hosts)
		if n == 0 {
			admissiontest.Trust(s.t, s.Store, attesttest.References()...)
		}
		h, err := s.vendor.NewHost(id, n+1)
		s.fatal(err)
		s.hosts[id] = h
		hca := h.Statement.HCAs[0]
		fmt.Fprintf(&y, "- id: %s\n  rack: r%d\n  ek_sha256: %s\n  hcas:\n  - node_guid: %v\n    ports:\n", id, n/16, h.EKDigest(), hca.NodeGUID)
		for i, p := range hca.Ports {
			fmt.Fprintf(&y, "    - {port: %d, guid: %v, cable: 0x%x/%d}\n", p.Num, p.GUID, 0x1000+n/16, n%16*2+i+1)
		}
	}
	return y.String()
}

// Import imports a file of inventory.
func (s *Site) Import(file string) {
	s.t.Helper()
	files := []inventory.File{{Name: "hosts.yaml", Data: []byte(file)}}
	_, err := s.Service().Inventory().ImportInventory(s.t.Context(), Importer, files, v1.RepairTicket{}, false)
	s.fatal(err)
}

// Join assigns hosts to the cluster of the site, which it creates first if need be.
func (s *Site) Join(hosts ...string) {
	s.t.Helper()
	if !s.joined {
		_, err := s.Service().Tenancy().CreateTenant(s.t.Context(), Importer, v1.NewTenant{Name: Tenant})
		s.fatal(err)
		_, err = s.Service().Tenancy().CreateCluster(s.t.Context(), Importer, v1.NewCluster{Name: Cluster, Tenant: Tenant})
		s.fatal(err)
		s.joined = true
	}
	for _, h := range hosts {
		s.Assign(h)
	}
}

// Attested is what a host has once its evidence is accepted.
type Attested struct {
	Session *attest.Session
	Result  *v1.AttestResult

	host    *attesttest.Host
	channel []byte
}

// Boot boots a host, so that it can attest.
func (s *Site) Boot(host string) *attesttest.Host {
	h := s.hosts[host]
	h.Reboot()
	h.Statement.CollectedAt = time.Now().UTC().Truncate(time.Second)
	return h
}

// Attest boots a host that is assigned, and has its evidence accepted.
func (s *Site) Attest(host string) *Attested {
	s.t.Helper()
	a := &Attested{host: s.Boot(host), channel: make([]byte, attest.ExporterSize)}
	svc := s.Service().Attestation()
	var err error
	a.Session, err = svc.OpenSession(s.t.Context(), a.host.Request(), "192.0.2.200")
	s.fatal(err)
	ev, err := a.host.Answer(a.Session, a.channel)
	s.fatal(err)
	a.Result, err = svc.SubmitEvidence(s.t.Context(), a.Session.ID, a.channel, ev)
	s.fatal(err)
	return a
}

// Seal returns what seals the evidence of a host.
func (a *Attested) Seal(t testing.TB) *attest.SealEvidence {
	t.Helper()
	ev, err := a.host.Seal(a.Session, a.Result.Seal, a.channel)
	if err != nil {
		t.Fatal(err)
	}
	return ev
}

// Certify adds a new key of the host to what seals its evidence, and returns it.
func (a *Attested) Certify(t testing.TB, seal *attest.SealEvidence) (key *ecdsa.PrivateKey) {
	t.Helper()
	var err error
	if key, seal.HostKey, err = a.host.HostKey(a.Session, a.Result.Seal, a.channel); err != nil {
		t.Fatal(err)
	}
	return key
}

// Hand hands a host over: its evidence is accepted, and sealed. It returns its status token.
func (s *Site) Hand(host string) (token string) {
	s.t.Helper()
	a := s.Attest(host)
	_, err := s.Submit(a, a.Seal(s.t))
	s.fatal(err)
	return a.Result.StatusToken
}

// Submit sends the seal of a host.
func (s *Site) Submit(a *Attested, ev *attest.SealEvidence) (*v1.SealResult, error) {
	return s.Service().Attestation().SubmitSeal(s.t.Context(), a.Session.ID, a.channel, "192.0.2.200", ev)
}

// Edit changes what is on record of a host.
func (s *Site) Edit(host string, change func(*hostrecord.Record)) {
	s.t.Helper()
	s.update(func(ctx context.Context, tx *store.Tx) error {
		rec, err := store.Optional(hostrecord.Records().Get(ctx, tx, host))
		if err != nil {
			return err
		}
		change(&rec)
		return hostrecord.Records().Put(tx, host, rec)
	})
}

// Place shows the ports of hosts where inventory has them, as the Subnet Manager's role reports them.
func (s *Site) Place(hosts ...string) {
	s.t.Helper()
	s.update(func(ctx context.Context, tx *store.Tx) error {
		for _, id := range hosts {
			h, err := inventory.Hosts().Get(ctx, tx, id)
			if err != nil {
				return err
			}
			for _, a := range h.Value.HCAs {
				for _, p := range a.Ports {
					shown := records.Port{NodeGUID: a.NodeGUID, Place: p.Cable, HCACap: 32, SwitchCap: 32, State: "Active"}
					if err := records.Ports().Put(tx, p.GUID.String(), shown); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	s.settle()
}

// Program reports every grant as read back: applied, or proven absent if it is withdrawn.
func (s *Site) Program() {
	s.t.Helper()
	grants, rev, err := records.Grants().List(s.t.Context(), s.Store, "")
	s.fatal(err)
	s.update(func(_ context.Context, tx *store.Tx) (err error) {
		for _, g := range grants {
			m := records.Membership{State: records.Applied, Revision: rev}
			if g.Value.Withdrawn {
				m.State, m.HCAProven = records.Removed, true
			}
			err = errors.Join(err, records.Memberships().Put(tx, g.Key, m))
		}
		return err
	})
	s.settle()
}

// Admit brings a host that is registered all the way into the cluster.
func (s *Site) Admit(host string) {
	s.t.Helper()
	s.Join(host)
	s.Place(host)
	s.Hand(host)
	s.Program()
	if h := s.Host(host); h.Status.Phase != v1.PhaseAdmitted {
		s.t.Fatalf("host %s is %+v, want it admitted", host, h.Status)
	}
}

func (s *Site) settle() {
	s.t.Helper()
	s.fatal(s.Service().Settle(s.t.Context()))
}

func (s *Site) update(f func(context.Context, *store.Tx) error) {
	s.t.Helper()
	_, err := s.Store.Update(s.t.Context(), func(tx *store.Tx) error { return f(s.t.Context(), tx) })
	s.fatal(err)
}
