package admission

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/inventory/register"
	"portcullis/api/store"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/reference"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/vault"
)

var member storetest.Shared

func TestMain(m *testing.M) { os.Exit(storetest.Run(m, &member)) }

type (
	verifier  = attestation.Service
	registrar = register.Service
)

// services are those that a lab asks.
type services struct {
	*Service
	*verifier
	*registrar
}

// lab is a site with hosts whose TPMs are software, and a fabric that is a few
// maps, over a real store.
type lab struct {
	t       testing.TB
	store   *store.Store
	svc     services
	clock   time.Time
	root    vault.Root // of the keys of sessions
	policy  *attest.Policy
	vendor  *attesttest.Vendor
	hosts   map[string]*attesttest.Host
	channel []byte
	options func(*Options)

	cannotLock bool // agents do not say that they can lock adapters

	fabric *fakeFabric
}

func newLab(t testing.TB, s *store.Store) *lab {
	t.Helper()
	v, err := attesttest.NewVendor("Example TPM")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{
		t: t, store: s, clock: attesttest.Epoch, policy: attest.DefaultPolicy(), vendor: v,
		hosts: map[string]*attesttest.Host{}, channel: make([]byte, attest.ExporterSize),
		fabric: newFakeFabric(healthy(s)), root: sessionRoot(t, "sessions"),
	}
	if err := l.policy.AddCertificates(v.PEM()); err != nil {
		t.Fatal(err)
	}
	l.restart()
	l.trust(attesttest.References()...)
	return l
}

// sessionRoot returns a root; each name has another one.
func sessionRoot(t testing.TB, name string) vault.Root {
	t.Helper()
	secret := sha256.Sum256([]byte(name))
	r, err := vault.NewRoot(name, secret[:])
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// trust puts reference values into the store.
func (l *lab) trust(sets ...reference.Set) {
	l.t.Helper()
	if _, err := healthy(l.store).Update(l.ctx(), func(tx *store.Tx) (err error) {
		for i := range sets {
			err = errors.Join(err, attestation.References().Put(tx, attestation.ReferenceKey(sets[i].Class, sets[i].Version), sets[i]))
		}
		return err
	}); err != nil {
		l.t.Fatal(err)
	}
}

// healthy returns the same store without injected failures.
func healthy(s *store.Store) *store.Store {
	if f, ok := s.Backend().(*storetest.Failing); ok {
		return s.Over(f.Backend)
	}
	return s.Twin()
}

// restart forgets everything that is not in the store.
func (l *lab) restart() {
	o := Options{Store: l.store, Policy: l.policy, Log: storetest.Quiet(), Now: func() time.Time { return l.clock }, Root: l.root}
	if l.options != nil {
		l.options(&o)
	}
	s := New(o)
	l.svc = services{s, s.Attestation(), s.Inventory()}
}

// addHosts makes n hosts host-1 to host-n with two ports each, cabled to switch
// 0x10 from port 1 on, and imports them.
func (l *lab) addHosts(n int) {
	l.t.Helper()
	var y strings.Builder
	y.WriteString("hosts:\n")
	for i := 1; i <= n; i++ {
		id := fmt.Sprintf("host-%d", i)
		h, err := l.vendor.NewHost(id, i)
		if err != nil {
			l.t.Fatal(err)
		}
		l.hosts[id] = h
		hca := h.Statement.HCAs[0]
		fmt.Fprintf(&y, "- id: %s\n  ek_sha256: %s\n  hcas:\n  - node_guid: %v\n    ports:\n", id, h.EKDigest(), hca.NodeGUID)
		for j, p := range hca.Ports {
			fmt.Fprintf(&y, "    - {port: %d, guid: %v, cable: 0x10/%d}\n", p.Num, p.GUID, (i-1)*2+j+1)
		}
	}
	_, err := l.svc.ImportInventory(l.ctx(), "alice", []inventory.File{{Name: "hosts.yaml", Data: []byte(y.String())}}, v1.RepairTicket{}, false)
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) ctx() context.Context { return l.t.Context() }

// attest boots the host and runs its agent against the service.
func (l *lab) attest(host string) (*v1.SealResult, error) {
	l.hosts[host].Boot.Reset++
	return l.attestInThisBoot(host)
}

// attestInThisBoot empties the registers without the TPM counting a boot. No TPM does that; it shows that the rules about
// boots hold by themselves.
func (l *lab) attestInThisBoot(host string) (*v1.SealResult, error) {
	h := l.hosts[host]
	empty(h)
	h.Statement.CollectedAt = l.clock
	ses, err := l.svc.OpenSession(l.ctx(), h.Request(), "192.0.2.1")
	if err != nil {
		return nil, err
	}
	r, err := l.svc.SubmitEvidence(l.ctx(), ses.ID, l.channel, l.answer(host, ses))
	if err != nil {
		return nil, err
	}
	return l.seal(host, ses, r)
}

// seal hands the host over.
func (l *lab) seal(host string, ses *attest.Session, r *v1.AttestResult) (*v1.SealResult, error) {
	l.t.Helper()
	ev, err := l.hosts[host].Seal(ses, r.Seal, l.channel)
	if err != nil {
		l.t.Fatal(err)
	}
	return l.svc.SubmitSeal(l.ctx(), ses.ID, l.channel, "192.0.2.1", ev)
}

// empty resets the host's registers, and with them what it measured.
func empty(h *attesttest.Host) {
	boot := h.Boot
	h.Reboot()
	h.Boot = boot
}

// settle does what Run does after changes.
func (l *lab) settle() {
	l.t.Helper()
	snap, err := l.store.Twin().Snapshot(l.ctx())
	if err == nil {
		_, err = l.svc.settleAll(l.ctx(), snap)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) host(id string) *v1.Host {
	l.t.Helper()
	h, err := l.svc.Host(l.ctx(), id)
	if err != nil {
		l.t.Fatal(err)
	}
	return h
}

// ports returns the host's ports as inventory has them.
func (l *lab) ports(id string) []inventory.Port {
	l.t.Helper()
	rec, err := inventory.Hosts().Get(l.ctx(), l.fabric.store, id)
	if err != nil {
		l.t.Fatal(err)
	}
	return rec.Value.Ports()
}

// tenantWithClusters creates tenant "acme" with the clusters.
func (l *lab) tenantWithClusters(names ...string) {
	l.t.Helper()
	if _, err := l.svc.Tenancy().CreateTenant(l.ctx(), "alice", v1.NewTenant{Name: "acme"}); err != nil {
		l.t.Fatal(err)
	}
	for _, n := range names {
		if _, err := l.svc.Tenancy().CreateCluster(l.ctx(), "alice", v1.NewCluster{Name: n, Tenant: "acme"}); err != nil {
			l.t.Fatal(err)
		}
	}
}

// admit takes a host all the way.
func (l *lab) admit(id, cluster string) {
	l.t.Helper()
	l.assign(id, cluster)
	l.fabric.place(l.t, l.ports(id)...)
	if _, err := l.attest(id); err != nil {
		l.t.Fatal(err)
	}
	l.fabric.program(l.t)
	l.settle()
	if p := l.host(id).Status.Phase; p != v1.PhaseAdmitted {
		l.t.Fatalf("host %s is %s, want admitted", id, p)
	}
}

// fakeFabric plays the sm role: it obeys grants and reports what it holds.
type fakeFabric struct {
	store    *store.Store
	onSwitch map[records.Key]bool
	onHCA    map[records.Key]bool
	silent   map[ib.GUID]bool // HCAs that do not answer
}

func newFakeFabric(s *store.Store) *fakeFabric {
	return &fakeFabric{store: s, onSwitch: map[records.Key]bool{}, onHCA: map[records.Key]bool{}, silent: map[ib.GUID]bool{}}
}

// place shows the ports where they are cabled.
func (f *fakeFabric) place(t testing.TB, ports ...inventory.Port) {
	t.Helper()
	for _, p := range ports {
		f.show(t, p.GUID, records.Port{Place: p.Cable, HCACap: 32, SwitchCap: 32})
	}
}

// show shows a port, on the node that inventory says unless p has another.
func (f *fakeFabric) show(t testing.TB, g ib.GUID, p records.Port) {
	t.Helper()
	if p.NodeGUID == 0 && !p.Place.IsZero() {
		p.NodeGUID = f.node(t, g)
	}
	_, err := f.store.Update(t.Context(), func(tx *store.Tx) error { return records.Ports().Put(tx, g.String(), p) })
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fakeFabric) node(t testing.TB, g ib.GUID) ib.GUID {
	t.Helper()
	hosts, _, err := inventory.Hosts().List(t.Context(), f.store, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts {
		for _, a := range h.Value.HCAs {
			if slices.ContainsFunc(a.Ports, func(p inventory.Port) bool { return p.GUID == g }) {
				return a.NodeGUID
			}
		}
	}
	t.Fatalf("no host has port %v", g)
	return 0
}

// program makes every port what the grants say, and reports it.
func (f *fakeFabric) program(t testing.TB) {
	t.Helper()
	snap, err := f.store.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	grants, _, err := records.Grants().List(t.Context(), snap, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range grants {
		f.obey(t, g, snap.Revision)
	}
}

func (f *fakeFabric) obey(t testing.TB, g store.Record[records.Grant], rev int64) {
	t.Helper()
	k, err := records.ParseKey(g.Key)
	if err != nil {
		t.Fatal(err)
	}
	m := records.Membership{State: records.Removed, Revision: rev}
	if g.Value.Withdrawn {
		delete(f.onSwitch, k)
		if !f.silent[k.GUID] {
			delete(f.onHCA, k)
			m.HCAProven = true
		}
	} else if !f.silent[k.GUID] {
		f.onSwitch[k], f.onHCA[k] = true, true
		m.State = records.Applied
	} else {
		return
	}
	f.report(t, k, m)
}

func (f *fakeFabric) report(t testing.TB, k records.Key, m records.Membership) {
	t.Helper()
	_, err := f.store.Update(t.Context(), func(tx *store.Tx) error { return records.Memberships().Put(tx, k.String(), m) })
	if err != nil {
		t.Fatal(err)
	}
}

// publish writes the subnet manager's report.
func (f *fakeFabric) publish(t testing.TB, sm v1.SM) {
	t.Helper()
	_, err := f.store.Update(t.Context(), func(tx *store.Tx) error { return records.SMs().Put(tx, records.Master, sm) })
	if err != nil {
		t.Fatal(err)
	}
}

// holds lists the P_Keys on the switch port at a place.
func (f *fakeFabric) holds(p ib.Place) []ib.PKey {
	var out []ib.PKey
	for k := range f.onSwitch {
		if k.Place == p {
			out = append(out, k.PKey)
		}
	}
	slices.Sort(out)
	return out
}
