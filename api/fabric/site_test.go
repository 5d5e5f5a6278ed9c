package fabric_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/admission"
	"portcullis/api/admission/admissiontest"
	"portcullis/api/audit"
	"portcullis/api/fabric"
	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
)

var member storetest.Shared

func TestMain(m *testing.M) { os.Exit(storetest.Run(m, &member)) }

// site is the whole service but its HTTP: store, admission, link, driver and
// core, over a simulated fabric of two leaves, two spines and four hosts with
// two HCAs each, whose TPMs are software.
type site struct {
	t       *testing.T
	store   *store.Store
	list    *netlist.Netlist
	sim     *sim.Fabric
	policy  *attest.Policy
	hosts   map[string]*attesttest.Host
	hcas    map[string][]string // nodes of a host
	channel []byte

	svc  *admission.Service
	stop func()
}

func newSite(t *testing.T) *site {
	t.Helper()
	list, err := netlist.FatTree2(netlist.Shape{Hosts: 5, HCAs: 2, Leaves: 2, Spines: 2})
	if err != nil {
		t.Fatal(err)
	}
	v, err := attesttest.NewVendor("Example TPM")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{
		t: t, store: member.Open(t), list: list, sim: sim.New(list), policy: attest.DefaultPolicy(),
		hosts: map[string]*attesttest.Host{}, hcas: map[string][]string{}, channel: make([]byte, attest.ExporterSize),
	}
	if err := s.policy.AddCertificates(v.PEM()); err != nil {
		t.Fatal(err)
	}
	admissiontest.Trust(t, s.store, attesttest.References()[0])
	s.start()
	t.Cleanup(func() {
		s.stop()
		if _, err := audit.Verify(context.Background(), s.store); err != nil {
			t.Error(err)
		}
	})
	s.importHosts(v)
	return s
}

// start runs the service over the store as it is.
func (s *site) start() {
	s.t.Helper()
	port, err := s.sim.Attach("sm", true)
	if err != nil {
		s.t.Fatal(err)
	}
	log := storetest.Quiet()
	link := fabric.New(fabric.Options{Store: s.store, Log: log})
	s.svc = admission.New(admission.Options{
		Store: s.store, Policy: s.policy, Log: log, PKeyMinAge: -1,
		Now: func() time.Time { return attesttest.Epoch.Add(time.Since(began)) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 3)
	go func() { done <- link.Run(ctx) }()
	go func() { done <- s.svc.Run(ctx) }()
	go func() {
		done <- driver.Run(ctx, driver.Options{
			Port: port, Store: link, Log: log, OnEvent: link.OnEvent, OnView: link.OnView,
			Core: sm.Config{Enforcement: sm.Accepted, IntentWait: time.Minute},
		}, link.Intents())
	}()
	s.stop = func() {
		cancel()
		for range 3 {
			select {
			case err := <-done:
				if err != nil {
					s.t.Error(err)
				}
			case <-time.After(20 * time.Second):
				s.t.Error("a part of the service does not stop")
			}
		}
	}
}

// began makes the service's clock begin at the time for which the software
// TPMs' certificates are made.
var began = time.Now()

// importHosts declares the hosts as the netlist has them.
func (s *site) importHosts(v *attesttest.Vendor) {
	s.t.Helper()
	var y strings.Builder
	y.WriteString("hosts:\n")
	byHost := map[string][]*netlist.Node{}
	for i := range s.list.Nodes {
		n := &s.list.Nodes[i]
		if host, _, _ := strings.Cut(n.Name, "-"); n.Type == ib.NodeCA && n.Name != "sm" {
			byHost[host] = append(byHost[host], n)
		}
	}
	for i, host := range slices.Sorted(keys(byHost)) {
		id := fmt.Sprintf("host-%d", i+1)
		h, err := v.NewHost(id, i+1)
		if err != nil {
			s.t.Fatal(err)
		}
		h.Statement.HCAs = nil
		fmt.Fprintf(&y, "- id: %s\n  ek_sha256: %s\n  hcas:\n", id, h.EKDigest())
		for _, n := range byHost[host] {
			s.hcas[id] = append(s.hcas[id], n.Name)
			h.Statement.HCAs = append(h.Statement.HCAs, statementHCA(n))
			fmt.Fprintf(&y, "  - {node_guid: %v, ports: [{port: 1, guid: %v, cable: %v}]}\n", n.GUID, n.PortGUID(1), s.place(n))
		}
		s.hosts[id] = h
	}
	if _, err := s.svc.Inventory().ImportInventory(s.t.Context(), "alice", []inventory.File{{Name: "hosts.yaml", Data: []byte(y.String())}}, v1.RepairTicket{}, false); err != nil {
		s.t.Fatal(err)
	}
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func statementHCA(n *netlist.Node) attest.HCA {
	return attesttest.HCA("mlx5_"+strings.ReplaceAll(n.Name, "-", "_"), n.GUID, n.SystemImageGUID, n.PortGUID(1))
}

func (s *site) place(n *netlist.Node) ib.Place {
	for i := range s.list.Nodes {
		if s.list.Nodes[i].Name == n.Ports[1].Peer {
			return ib.Place{Switch: s.list.Nodes[i].GUID, Port: n.Ports[1].PeerPort}
		}
	}
	s.t.Fatalf("node %s has no cable", n.Name)
	return ib.Place{}
}

func (s *site) node(name string) *netlist.Node {
	i := slices.IndexFunc(s.list.Nodes, func(n netlist.Node) bool { return n.Name == name })
	return &s.list.Nodes[i]
}

// cluster creates a cluster of tenant acme, and the tenant if need be.
func (s *site) cluster(name string) ib.PKey {
	s.t.Helper()
	if _, err := s.svc.Tenancy().CreateTenant(s.t.Context(), "alice", v1.NewTenant{Name: "acme"}); err != nil && !refusal.IsKind(err, refusal.Conflict) {
		s.t.Fatal(err)
	}
	c, err := s.svc.Tenancy().CreateCluster(s.t.Context(), "alice", v1.NewCluster{Name: name, Tenant: "acme"})
	if err != nil {
		s.t.Fatal(err)
	}
	return c.PKey
}

// provision assigns a host, boots it and runs its agent.
func (s *site) provision(id, cluster string) {
	s.t.Helper()
	if _, err := s.svc.Assign(s.t.Context(), "alice", id, v1.Assignment{Cluster: cluster}); err != nil {
		s.t.Fatal(err)
	}
	h := s.hosts[id]
	h.Reboot()
	h.Statement.CollectedAt = attesttest.Epoch.Add(time.Since(began)).Truncate(time.Second).UTC()
	ses, err := s.svc.Attestation().OpenSession(s.t.Context(), h.Request(), "192.0.2.1")
	if err != nil {
		s.t.Fatal(err)
	}
	ev, err := h.Answer(ses, s.channel)
	if err != nil {
		s.t.Fatal(err)
	}
	result, err := s.svc.Attestation().SubmitEvidence(s.t.Context(), ses.ID, s.channel, ev)
	if err != nil {
		s.t.Fatal(err)
	}
	seal, err := h.Seal(ses, result.Seal, s.channel)
	if err == nil {
		_, err = s.svc.Attestation().SubmitSeal(s.t.Context(), ses.ID, s.channel, "192.0.2.1", seal)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// until follows the host until it is in the phase.
func (s *site) until(id string, want v1.Phase) *v1.Host {
	s.t.Helper()
	return s.follow(id, "phase "+string(want), func(h *v1.Host) bool { return h.Status.Phase == want })
}

// follow follows the host until something holds of it.
func (s *site) follow(id, what string, holds func(*v1.Host) bool) *v1.Host {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	hosts, err := s.svc.Watch(ctx, id)
	if err != nil {
		s.t.Fatal(err)
	}
	var last *v1.Host
	for h := range hosts {
		if last = h; holds(h) {
			return h
		}
	}
	s.t.Fatalf("host %s did not come to %s, it is %s: %+v", id, what, last.Status.Phase, last.Status.Guards)
	return nil
}

// seenGuard is the index of the guard about what the fabric shows of a host's ports.
const seenGuard = 4

// untilGuard follows the host until one of its guards is met, or is not.
func (s *site) untilGuard(id string, guard int, met bool) *v1.Host {
	s.t.Helper()
	return s.follow(id, fmt.Sprintf("guard %d met: %v", guard, met), func(h *v1.Host) bool { return h.Status.Guards[guard].Met == met })
}

// untilActive waits until the subnet manager shows port 1 of a node as Active.
func (s *site) untilActive(n *netlist.Node) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	changes := s.store.Watch(ctx, records.Ports().Name(), 0)
	for {
		port, err := records.Ports().Get(ctx, s.store, n.PortGUID(1).String())
		if err == nil && port.Value.State == ib.PortActive.String() {
			return
		}
		if _, more := <-changes; !more {
			s.t.Fatalf("port 1 of %s did not become Active: %+v, %v", n.Name, port.Value, err)
		}
	}
}

// unplug pulls the cables of port 1 of nodes.
func (s *site) unplug(nodes ...*netlist.Node) {
	s.t.Helper()
	for _, n := range nodes {
		if err := s.sim.Unlink(n.Name, 1); err != nil {
			s.t.Fatal(err)
		}
	}
}

// plug connects port 1 of a node to the switch port where the netlist has another node, or the node itself.
func (s *site) plug(n, at *netlist.Node) {
	s.t.Helper()
	if err := s.sim.Relink(n.Name, 1, at.Ports[1].Peer, at.Ports[1].PeerPort); err != nil {
		s.t.Fatal(err)
	}
}

// untilSM waits for a report of the subnet manager.
func (s *site) untilSM(ok func(*v1.SM) bool) *v1.SM {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	changes := s.store.Watch(ctx, "fabric/sm/", 0)
	for {
		sm, err := s.svc.SM(ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		if ok(sm) {
			return sm
		}
		if _, more := <-changes; !more {
			s.t.Fatalf("the subnet manager stays %+v", sm)
		}
	}
}

// check compares the tables of the simulated devices with what is wanted: the
// tenant P_Keys on each HCA of the host and on its switch ports.
func (s *site) check(id string, want ...ib.PKey) {
	s.t.Helper()
	for _, name := range s.hcas[id] {
		n := s.node(name)
		if got := tenants(s.sim.PKeys(name, 1)); !slices.Equal(got, want) {
			s.t.Errorf("HCA %s of %s holds %v, want %v", name, id, got, want)
		}
		if got := tenants(s.sim.PKeys(n.Ports[1].Peer, n.Ports[1].PeerPort)); !slices.Equal(got, want) {
			s.t.Errorf("switch port of HCA %s of %s holds %v, want %v", name, id, got, want)
		}
	}
}

func (s *site) checkSwitch(id string, want ...ib.PKey) {
	s.t.Helper()
	for _, name := range s.hcas[id] {
		n := s.node(name)
		if got := tenants(s.sim.PKeys(n.Ports[1].Peer, n.Ports[1].PeerPort)); !slices.Equal(got, want) {
			s.t.Errorf("switch port of HCA %s of %s holds %v, want %v", name, id, got, want)
		}
	}
}

func tenants(all []ib.PKey) []ib.PKey {
	return slices.DeleteFunc(slices.Clone(all), func(k ib.PKey) bool { return !k.Valid() || k.Base() == ib.DefaultPKeyLimited })
}

// untilSeen waits until a port of the host is seen at a place.
func (s *site) untilSeen(id string, want ib.Place) {
	s.t.Helper()
	s.follow(id, "a port that is seen at "+want.String(), func(h *v1.Host) bool {
		return slices.ContainsFunc(h.HCAs, func(a v1.HCA) bool { return a.Ports[0].Seen == want })
	})
}

func (s *site) untilNoQuarantine() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	for changes := s.store.Watch(ctx, "", 0); ; {
		q, err := s.svc.Tenancy().QuarantinedPKeys(s.t.Context(), v1.PageQuery{})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(q.Items) == 0 {
			return
		}
		if _, more := <-changes; !more {
			s.t.Fatalf("still quarantined: %+v", q)
		}
	}
}
