package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/native"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

const (
	spareHCA    ib.GUID = 0x00ab_0000_0000_0100
	spareSwitch ib.GUID = 0x00ab_0000_0000_0200
)

// repair is a service over a simulated fabric that enforces, with its topology in force,
// and hosts with TPMs in one tenant's cluster, some of which talk to one another.
type repair struct {
	*topospecSite
	fab    *sim.Fabric
	list   *netlist.Netlist
	client ibsimlab.Client
	hosts  map[string]*machine
}

func newRepair(t *testing.T, names ...string) *repair {
	t.Helper()
	tpmtest.Require(t)
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 6, Leaves: 2, Spines: 2, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	fab := sim.NewWith(l, sim.Options{})
	client := simtest.Serve(t, fab)
	r := &repair{topospecSite: newTopospecSite(t, text.String(), "ibsim:"+client.Socket+"/sm"), fab: fab, list: l, client: client, hosts: map[string]*machine{}}
	vendor := tpmtest.ShortDir(t)
	for _, name := range names {
		n := l.Find(name)
		at := n.Ports[1]
		r.hosts[name] = newMachine(t, vendor, &machine{id: name, nodeGUID: n.GUID, place: fmt.Sprintf("%v/%d", l.Find(at.Peer).GUID, at.PeerPort)})
		r.hosts[name].serve(r.dir, r.address)
	}
	r.trust(r.hosts[names[0]])
	r.declare()
	return r
}

// trust has the service believe the vendor of a TPM.
func (r *repair) trust(m *machine) {
	r.t.Helper()
	roots, err := m.tpm.RootsPEM()
	if err != nil {
		r.t.Fatal(err)
	}
	write(r.t, filepath.Join(r.dir, "vendor.pem"), string(roots))
	file := filepath.Join(r.dir, "portcullisd.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		r.t.Fatal(err)
	}
	write(r.t, file, strings.NewReplacer(append(withoutCards, "roots: []", "roots: [vendor.pem]")...).Replace(string(data)))
	r.again()
}

// declare puts the fabric as it is, with two spares, into force.
func (r *repair) declare() {
	r.t.Helper()
	rev := r.rev
	rev.Policy.MinScore = 300
	for i := range rev.Devices {
		d := &rev.Devices[i]
		d.Host, d.Model = "", "ConnectX-7"
		if d.Kind == topospec.KindSwitch {
			d.Model = "MQM9700"
		} else {
			d.Host = d.Name
		}
	}
	rev.Devices = append(rev.Devices,
		topospec.Device{GUID: spareHCA, Kind: topospec.KindHCA, Model: "ConnectX-7", Ports: 1, Name: "spare-hca", Stock: topospec.Spare},
		topospec.Device{GUID: spareSwitch, Kind: topospec.KindSwitch, Model: "MQM9700", Ports: 8, Name: "spare-switch", Stock: topospec.Spare})
	first := r.draft(rev)
	r.approve(first)
	r.activate(first.Revision, "observe")
	r.applied(first.Revision, "observe")
	r.activate(first.Revision, "enforce")
	r.applied(first.Revision, "enforce")
}

// admit brings all hosts into one cluster.
func (r *repair) admit() {
	r.t.Helper()
	ctx, c := r.t.Context(), r.olga
	r.importHosts()
	for _, m := range r.hosts {
		trustBoots(r.t, r.olga, r.bob, m)
		break // all boot alike
	}
	if _, err := c.Tenants().Create(ctx, v1.NewTenant{Name: "acme"}); err != nil {
		r.t.Fatal(err)
	}
	if _, err := c.Clusters().Create(ctx, v1.NewCluster{Name: "acme-1", Tenant: "acme"}); err != nil {
		r.t.Fatal(err)
	}
	var waits []func()
	for name := range r.hosts {
		waits = append(waits, r.join(name))
	}
	for _, wait := range waits {
		wait()
	}
}

func (r *repair) importHosts() {
	r.t.Helper()
	text := "hosts:\n"
	for _, m := range r.hosts {
		text += m.inventory()
	}
	if _, err := r.olga.Inventory().Import(r.t.Context(), []v1.InventoryFile{{Name: "hosts.yaml", Content: text}}, v1.RepairTicket{}, false); err != nil {
		r.t.Fatal(err)
	}
}

// join assigns a host and has it attest; wait returns how that ended, once it is admitted.
func (r *repair) join(name string) (wait func()) {
	r.t.Helper()
	if _, err := r.olga.Hosts().Assign(r.t.Context(), name, v1.Assignment{Cluster: "acme-1"}); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.hosts[name].run(r.t) }()
	return func() {
		r.t.Helper()
		if err := <-ended; err != nil {
			r.t.Errorf("provision %s: %v", name, err)
		}
	}
}

// traffic sends packets between two admitted hosts until it is stopped. stop returns how many there were and how many were
// lost.
func (r *repair) traffic(from, to string) (stop func() (sent, lost int)) {
	r.t.Helper()
	key := phase(r.t, r.olga, from, v1.PhaseAdmitted).Status.PKey
	phase(r.t, r.olga, to, v1.PhaseAdmitted)
	ctx, cancel := context.WithCancel(r.t.Context())
	var wg sync.WaitGroup
	var sent, lost int
	d := sim.Data{SLID: r.fab.PortInfo(from, 1).LID, DLID: r.fab.PortInfo(to, 1).LID, PKey: key.Full(), DestQP: 2, Payload: 64}
	wg.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			sent++
			if rep, err := r.fab.Inject(sim.Endpoint{Node: from, Port: 1}, d); err != nil || !slices.Equal(rep.To, []sim.Endpoint{{Node: to, Port: 1}}) {
				lost++
			}
		}
	})
	return func() (int, int) {
		cancel()
		wg.Wait()
		return sent, lost
	}
}

// stands waits until a replacement is in a state.
func (r *repair) stands(ticket, state string) *v1.RMA {
	r.t.Helper()
	var last *v1.RMA
	eventually(r.t, ticket+" in state "+state, func() (bool, string) {
		var err error
		last, err = r.olga.RMAs().Get(r.t.Context(), ticket)
		return err == nil && last.State == state, fmt.Sprintf("%+v %v", last, err)
	})
	return last
}

// confirms takes a step as bob, once olga, who opened the window, was refused.
func (r *repair) confirms(ticket, want string) *v1.RMA {
	r.t.Helper()
	eventually(r.t, "the refusal of who opened "+ticket, func() (bool, string) {
		_, err := r.olga.RMAs().Confirm(r.t.Context(), ticket, v1.RMAConfirm{})
		if err == nil {
			r.t.Fatalf("%s is confirmed by who opened it", ticket)
		}
		return strings.Contains(err.Error(), "wrote it"), fmt.Sprint(err)
	})
	var out *v1.RMA
	eventually(r.t, "the confirmation of "+ticket, func() (bool, string) {
		var err error
		out, err = r.bob.RMAs().Confirm(r.t.Context(), ticket, v1.RMAConfirm{})
		return err == nil, fmt.Sprint(err)
	})
	if out.State != want {
		r.t.Fatalf("%s is %s after the confirmation, want %s: %+v", ticket, out.State, want, out)
	}
	return out
}

// problems returns the obstacles that the Subnet Manager reports.
func (r *repair) problems() []string {
	s, err := r.olga.SM().Get(r.t.Context())
	if err != nil {
		return []string{err.Error()}
	}
	return s.Problems
}

// content reads what a revision says.
func (r *repair) content(number uint64) *topospec.Revision {
	r.t.Helper()
	data, err := r.olga.Topospec().Content(r.t.Context(), number, "json")
	if err != nil {
		r.t.Fatal(err)
	}
	rev, err := native.Parse("revision", data)
	if err != nil {
		r.t.Fatal(err)
	}
	return rev
}

// namesOnly reports whatever differs between the first revision and a later one except for one device that has the place of
// another.
func (r *repair) namesOnly(number uint64, old, now ib.GUID) {
	r.t.Helper()
	before, after := r.content(1), r.content(number)
	was := map[string]bool{}
	for _, l := range before.Links {
		a, b := l.A, l.B
		for _, e := range []*topospec.End{&a, &b} {
			if e.GUID == old {
				e.GUID = now
			}
		}
		was[fmt.Sprint(min(a.String(), b.String()), max(a.String(), b.String()), l.State)] = true
	}
	for _, l := range after.Links {
		key := fmt.Sprint(min(l.A.String(), l.B.String()), max(l.A.String(), l.B.String()), l.State)
		if !was[key] {
			r.t.Errorf("revision %d has the link %v to %v, %v", number, l.A, l.B, l.State)
		}
		delete(was, key)
	}
	if len(was) > 0 {
		r.t.Errorf("revision %d lacks %v", number, was)
	}
	for _, d := range after.Devices {
		if d.GUID == old && d.Stock != topospec.Retired {
			r.t.Errorf("the old device is %v", d.Stock)
		}
	}
}

// refusedWith asks for what must be refused with a code.
func refusedWith(t *testing.T, code string, err error) {
	t.Helper()
	if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Code != code {
		t.Errorf("error %v, want the code %s", err, code)
	}
}

// TestRMAOfAdapter replaces the adapter of a host: the new one is held until its host has
// attested it and a second person has confirmed; then it has the place and the tenant's
// P_Key. The old one is cut off when it comes back. The traffic of others loses nothing,
// and the service is killed between steps.
func TestRMAOfAdapter(t *testing.T) {
	t.Parallel()
	r := newRepair(t, "h1", "h2", "h5")
	r.admit()
	stop := r.traffic("h2", "h5")
	ctx, h1 := t.Context(), r.hosts["h1"]
	phase(t, r.olga, "h1", v1.PhaseAdmitted)
	old := h1.nodeGUID

	if _, err := r.olga.RMAs().Start(ctx, v1.NewRMA{Kind: v1.RMAAdapter, Ticket: "RMA-7", Old: old, Window: 3600, Reason: "port errors"}); err != nil {
		t.Fatal(err)
	}
	_, err := r.bob.RMAs().Start(ctx, v1.NewRMA{Kind: v1.RMAAdapter, Ticket: "RMA-8", Old: old, Window: 3600, Reason: "again"})
	refusedWith(t, "rma_open", err)
	r.stands("RMA-7", "drafted")
	r.confirms("RMA-7", "open")
	_, err = r.bob.RMAs().Confirm(ctx, "RMA-7", v1.RMAConfirm{})
	refusedWith(t, "no_candidate", err)

	if _, err := r.olga.Hosts().Release(client.IfMatch(ctx, client.AnyVersion), "h1"); err != nil {
		t.Fatal(err)
	}
	phase(t, r.olga, "h1", v1.PhaseQuarantined)
	swap := func(g ib.GUID) {
		if err := r.fab.SetGUIDs("h1", g, g); err != nil {
			t.Fatal(err)
		}
		if err := r.fab.Reboot("h1"); err != nil {
			t.Fatal(err)
		}
	}
	swap(spareHCA)
	if x := r.stands("RMA-7", "candidate"); x.New != spareHCA {
		t.Errorf("the candidate is %v", x.New)
	}
	_, err = r.bob.RMAs().Confirm(ctx, "RMA-7", v1.RMAConfirm{})
	refusedWith(t, "not_attested", err)
	r.again()

	h1.nodeGUID = spareHCA
	h1.plant(t)
	if err := h1.tpm.PowerCycle(ctx); err != nil {
		t.Fatal(err)
	}
	r.importHosts()
	admitted := r.join("h1")
	if x := r.stands("RMA-7", "attested"); x.Attested.IsZero() {
		t.Errorf("%+v", x)
	}
	if pi := r.fab.PortInfo("h1", 1); pi.PortState > ib.PortInit || pi.LID != 0 {
		t.Errorf("the new adapter is %v with LID %v before it was confirmed", pi.PortState, pi.LID)
	}
	if !r.fab.PortInfo("h1", 1).MKey.IsZero() {
		t.Error("the new adapter has an M_Key before it was confirmed")
	}
	done := r.confirms("RMA-7", "accepted")
	admitted()
	r.again()
	phase(t, r.olga, "h1", v1.PhaseAdmitted)
	r.namesOnly(done.Replace, old, spareHCA)
	_, err = r.bob.RMAs().Confirm(ctx, "RMA-7", v1.RMAConfirm{})
	refusedWith(t, "rma_over", err)

	swap(old)
	at := r.list.Find("h1").Ports[1]
	eventually(t, "the port of the old adapter to be switched off", func() (bool, string) {
		pi := r.fab.PortInfo(at.Peer, at.PeerPort)
		return pi.PortPhysicalState == ib.PhysDisabled, fmt.Sprint(pi.PortPhysicalState)
	})
	if sent, lost := stop(); sent < 100 || lost > 0 {
		t.Errorf("the traffic of others: %d of %d packets were lost", lost, sent)
	}
}

// TestRMAOfSwitch replaces a leaf: the new one is held until a second person confirms, has
// the place with the ports of its hosts off, and they are let in when its cables to the
// spines are verified. Keys, inventory and memberships of its hosts follow.
func TestRMAOfSwitch(t *testing.T) {
	t.Parallel()
	r := newRepair(t, "h1", "h2", "h5")
	r.admit()
	stop := r.traffic("h1", "h2")
	phase(t, r.olga, "h5", v1.PhaseAdmitted)
	ctx := t.Context()
	leaf := r.list.Find("h5").Ports[1].Peer
	old := r.list.Find(leaf).GUID
	if leaf == r.list.Find("h1").Ports[1].Peer {
		t.Fatal("h1 and h5 are behind one leaf")
	}
	_, err := r.olga.RMAs().Start(ctx, v1.NewRMA{Kind: v1.RMASwitch, Ticket: "RMA-9", Old: old, New: spareHCA, Window: 3600, Reason: "fan"})
	refusedWith(t, "rma_refused", err)
	if _, err := r.olga.RMAs().Start(ctx, v1.NewRMA{Kind: v1.RMASwitch, Ticket: "RMA-9", Old: old, New: spareSwitch, Window: 3600, Reason: "fan"}); err != nil {
		t.Fatal(err)
	}
	r.confirms("RMA-9", "open")
	phase(t, r.olga, "h5", v1.PhaseAdmitted) // maintenance changes nothing
	if r.fab.PortInfo("h5", 1).MKey.IsZero() {
		t.Error("h5 has no M_Key")
	}
	if err := r.fab.SetGUIDs(leaf, spareSwitch, spareSwitch); err != nil {
		t.Fatal(err)
	}
	if err := r.fab.Reboot(leaf); err != nil {
		t.Fatal(err)
	}
	r.stands("RMA-9", "candidate")
	r.again()
	r.confirms("RMA-9", "replaced")
	r.again()
	hosts := r.list.Find("h5").Ports[1].PeerPort
	eventually(t, "the ports of hosts to be off", func() (bool, string) {
		pi := r.fab.PortInfo(leaf, hosts)
		return pi.PortPhysicalState == ib.PhysDisabled, fmt.Sprint(pi.PortPhysicalState)
	})
	eventually(t, "verified cables of the new switch", func() (bool, string) {
		x, err := r.olga.RMAs().Get(ctx, "RMA-9")
		return err == nil && strings.Contains(x.Next, "confirm"), fmt.Sprintf("%+v %v", x, err)
	})
	done := r.confirms("RMA-9", "accepted")
	h := phase(t, r.olga, "h5", v1.PhaseAdmitted)
	eventually(t, "the place of h5", func() (bool, string) {
		var err error
		h, err = r.olga.Hosts().Get(ctx, "h5")
		return err == nil && h.Status.Phase == v1.PhaseAdmitted && strings.Contains(fmt.Sprintf("%+v", h), spareSwitch.String()), fmt.Sprintf("%+v %v", h, err)
	})
	r.namesOnly(done.Open, old, spareSwitch)
	eventually(t, "the M_Key of h5 to be held", func() (bool, string) { // a new one, if its link was lost just after it was shown
		var at v1.FabricKey
		for page, err := range r.olga.Keys().Devices(ctx, v1.PageQuery{}) {
			if err != nil {
				return false, err.Error()
			}
			for _, k := range page.Items {
				if k.GUID == r.list.Find("h5").PortGUID(1) {
					at = k
				}
			}
		}
		return at.State == "held" && at.Place.Switch == spareSwitch && !r.fab.PortInfo("h5", 1).MKey.IsZero(), fmt.Sprintf("%+v", at)
	})
	eventually(t, "the M_Key of the new switch", func() (bool, string) {
		return !r.fab.PortInfo(leaf, 0).MKey.IsZero(), fmt.Sprint(r.problems())
	})
	if sent, lost := stop(); sent < 100 || lost > 0 {
		t.Errorf("the traffic of others: %d of %d packets were lost", lost, sent)
	}
}
