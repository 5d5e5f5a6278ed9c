package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
)

// TestViolationsOfAnAdmittedHost is the whole path on a fabric that enforces. A host that was admitted by its TPM does what
// it must not, and the list of violations names host and tenant. Then it sends a storm of traps: all are counted, the log
// gets a few lines, and few requests are sent because of them.
func TestViolationsOfAnAdmittedHost(t *testing.T) {
	t.Parallel()
	vendor := tpmtest.ShortDir(t)
	tpmtest.Require(t)
	f := servedKeyFabric(t, sim.Modern())
	hosts := make(map[string]*machine)
	for _, name := range []string{"h1", "h2"} {
		n := f.list.Find(name)
		hosts[name] = f.machine(t, vendor, name)
		if n.PortGUID(1) != n.GUID+1 {
			t.Fatalf("%s has port GUID %v, node GUID %v", name, n.PortGUID(1), n.GUID)
		}
	}
	h1, h2 := hosts["h1"], hosts["h2"]
	dir, address := install(t, "--fabric-port", "ibsim:"+f.client.Socket+"/sm")
	trustVendor(t, dir, h1)
	d := start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()
	trustBoots(t, c, c, h1)
	if _, err := c.Inventory().Import(ctx, []v1.InventoryFile{{Name: "rack.yaml", Content: "hosts:\n" + h1.inventory() + h2.inventory()}}, v1.RepairTicket{}, false); err != nil {
		t.Fatal(err)
	}
	keys := make(map[string]ib.PKey)
	for host, tenant := range map[string]string{"h1": "acme", "h2": "blue"} {
		hosts[host].serve(dir, address)
		if _, err := c.Tenants().Create(ctx, v1.NewTenant{Name: tenant}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Clusters().Create(ctx, v1.NewCluster{Name: tenant + "-1", Tenant: tenant}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Hosts().Assign(ctx, host, v1.Assignment{Cluster: tenant + "-1"}); err != nil {
			t.Fatal(err)
		}
		hosts[host].provision(t)
		keys[tenant] = phase(t, c, host, v1.PhaseAdmitted).Status.PKey
	}

	// Names of tenants are a second old at most.
	admitted := time.Now()
	eventually(t, "the names of tenants", func() (bool, string) { return time.Since(admitted) > 2*time.Second, "" })

	// Packets with the other tenant's P_Key, and an SMP without the M_Key of the switch.
	from := sim.Endpoint{Node: "h1", Port: 1}
	lid := func(name string) ib.LID { return f.PortInfo(name, 1).LID }
	if _, err := f.Inject(from, sim.Data{SLID: lid("h1"), DLID: lid("h2"), PKey: keys["blue"].Full(), DestQP: 9, Payload: 64}); err != nil {
		t.Fatal(err)
	}
	way := mad.MakeRoute(1)
	smp := sim.Forged{SLID: ib.PermissiveLID, DLID: ib.PermissiveLID}
	mad.NewSMP(&smp.MAD, mad.Header{Method: mad.MethodSet, Attr: mad.AttrPortInfo, TID: 7}, &way, ib.NewMKey(0xfeedfacecafebeef))
	if err := f.InjectMAD(from, smp); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]v1.FabricViolation{
		"p-key": {Host: "h1", Tenant: "acme", By: "port", Verdict: "claimed"},
		"m-key": {Host: "h1", Tenant: "acme", By: "way", Verdict: "confirmed"},
	} {
		var got v1.FabricViolation
		eventually(t, "the violation "+kind, func() (bool, string) {
			rows := violations(t, c, v1.ViolationQuery{Kind: kind, Host: "h1"})
			if len(rows) == 1 {
				got = rows[0]
			}
			return len(rows) == 1 && got.Verdict == want.Verdict, fmt.Sprintf("%+v\n%s", rows, d.lines)
		})
		if got.Host != want.Host || got.Tenant != want.Tenant || got.By != want.By || got.Count != 1 {
			t.Errorf("%s: got %+v, want %+v", kind, got, want)
		}
		if rows := violations(t, c, v1.ViolationQuery{Kind: kind, Tenant: "blue"}); len(rows) != 0 {
			t.Errorf("%s: the other tenant is said to have done it, too: %+v", kind, rows)
		}
	}
	eventually(t, "the log to name the host", func() (bool, string) {
		return strings.Contains(d.lines.String(), "host=h1") && strings.Contains(d.lines.String(), "tenant=acme"), d.lines.String()
	})

	stormOfTraps(t, c, d, f, dir, address)
	if strings.Contains(strings.ToLower(d.lines.String()), "feedface") {
		t.Error("the log shows a key that was offered")
	}
}

// stormOfTraps has h1 accuse h2 in the name of the leaf switch, over and over.
func stormOfTraps(t *testing.T, c *client.Client, d *process, f *keyFabric, dir, address string) {
	t.Helper()
	const storm, batch = 3000, 500 // the queue of an adapter holds 512
	var lines, asked, counted float64
	look := func() {
		lines = float64(strings.Count(d.lines.String(), "event=violation"))
		asked = metric(t, dir, address, `portcullis_sm_smp_sent_total`)
		counted = metric(t, dir, address, `portcullis_violations_total{class="m_key",verdict="reported"}`)
	}
	look()
	wasLines, wasAsked, wasCounted := lines, asked, counted
	leaf := f.list.Find("h1").Ports[1].Peer
	leafLID := f.PortInfo(leaf, 0).LID
	for i := 0; i < storm; i += batch {
		for j := i; j < i+batch; j++ {
			m := sim.Forged{SLID: leafLID, DLID: f.PortInfo("sm", 1).LID}
			mad.NewSMP(&m.MAD, mad.Header{Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: ib.TID(0x10000 + j)}, nil, ib.MKey{})
			if err := mad.Encode(m.MAD.Data(), &mad.Trap256{
				NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeSecurity, TrapNumber: mad.TrapBadMKey, IssuerLID: leafLID},
				LID:          f.PortInfo("h2", 1).LID, Method: mad.MethodSet, AttributeID: mad.AttrPortInfo, MKey: ib.NewMKey(0xfeedfacecafebeef),
			}); err != nil {
				t.Fatal(err)
			}
			if err := f.InjectMAD(sim.Endpoint{Node: "h1", Port: 1}, m); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "all traps to be counted", func() (bool, string) {
			counted = metric(t, dir, address, `portcullis_violations_total{class="m_key",verdict="reported"}`)
			return counted-wasCounted >= float64(i+batch), fmt.Sprintf("%v of %d", counted-wasCounted, i+batch)
		})
	}
	look()
	if counted-wasCounted != storm {
		t.Errorf("%v traps were counted, want %d", counted-wasCounted, storm)
	}
	if n := lines - wasLines; n > 40 {
		t.Errorf("the log has %v lines of %d violations", n, storm)
	}
	if n := asked - wasAsked; n > storm/2 {
		t.Errorf("%v requests followed from %d traps", n, storm)
	}
	rows := violations(t, c, v1.ViolationQuery{Kind: "m-key", Host: "h2"})
	if len(rows) != 1 || rows[0].Count != storm || rows[0].Verdict == "confirmed" || rows[0].By != "lid" {
		t.Errorf("h2 is said to have done this: %+v", rows)
	}
	for _, name := range []string{"h1", "h2"} {
		n := f.list.Find(name)
		if s := f.PortInfo(n.Ports[1].Peer, n.Ports[1].PeerPort).PortState; s != ib.PortActive {
			t.Errorf("%s is %v after traps alone", name, s)
		}
	}
}

// violations lists all rows that a query asks for.
func violations(t *testing.T, c *client.Client, q v1.ViolationQuery) (out []v1.FabricViolation) {
	t.Helper()
	for page, err := range c.Fabric().Violations(t.Context(), q) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, page.Items...)
	}
	return out
}

// metric sums the samples of a metric whose name and labels begin so.
func metric(t *testing.T, dir, address, prefix string) (sum float64) {
	t.Helper()
	body, code := fetchRoute(t, dir, address, "/metrics")
	if code != 200 {
		t.Fatalf("metrics: %d %s", code, body)
	}
	found := false
	for _, m := range regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(prefix)+`\S* (\S+)$`).FindAllStringSubmatch(string(body), -1) {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum, found = sum+v, true
	}
	if !found {
		t.Fatalf("there is no %s in\n%s", prefix, body)
	}
	return sum
}

// withoutCards is what a policy must waive for hosts that only sysfs describes, and where one person plays all operators.
var withoutCards = []string{
	"assurance: G1", "assurance: none", "require_lock: true", "require_lock: false",
	"# confirm it.\n  two_persons: true", "# confirm it.\n  two_persons: false",
}

// trustVendor has the service believe the TPMs of a vendor, and puts other settings in
// place of some more.
func trustVendor(t testing.TB, dir string, m *machine, other ...string) {
	t.Helper()
	roots, err := m.tpm.RootsPEM()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "vendor.pem"), string(roots))
	file := filepath.Join(dir, "portcullisd.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	other = append(other, withoutCards...)
	write(t, file, strings.NewReplacer(append(other, "roots: []", "roots: [vendor.pem]")...).Replace(string(data)))
}
