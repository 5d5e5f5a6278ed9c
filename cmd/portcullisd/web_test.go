package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/receipt"
	v1 "portcullis/api/v1"
	"portcullis/api/web/webtest"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
)

// The service has pages for browsers unless the configuration says that there are none.
func TestPagesSwitch(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		dir, address := install(t, "--fabric-port", nobody())
		if !on {
			edit(t, dir, map[string]string{"  web: true\n": "  web: false\n"})
		}
		start(t, dir)
		pem, err := os.ReadFile(filepath.Join(dir, "tls", "ca.pem"))
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
		t.Cleanup(browser.CloseIdleConnections)
		r, err := browser.Get("https://" + address + "/")
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		shown := r.StatusCode == http.StatusOK && r.Request.URL.Path == "/ui/" && strings.Contains(string(text), `<main id="main"`)
		if err != nil || shown != on {
			t.Errorf("api.web %v: %s, status %d, %v", on, r.Request.URL, r.StatusCode, err)
		}
	}
}

// TestPagesOfARunningService: a reader with Chromium sees a host that attests with its TPM become admitted, and what it is stopped at
// then, without touching the page.
func TestPagesOfARunningService(t *testing.T) {
	t.Parallel()
	vendor := tpmtest.ShortDir(t)
	tpmtest.Require(t)
	f := servedKeyFabric(t, sim.Modern())
	h1 := f.machine(t, vendor, "h1")
	dir, address := install(t, "--fabric-port", "ibsim:"+f.client.Socket+"/sm")
	trustVendor(t, dir, h1)
	edit(t, dir, map[string]string{"verify:\n  # From": "verify:\n  every: 0s\n  # From", "\n  every: 1h\n": "\n", "    every: 30s\n": "    every: 5s\n"}) // so that the page of the profile does not depend on how long the test takes
	start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()
	trustBoots(t, c, c, h1)
	if _, err := c.Inventory().Import(ctx, []v1.InventoryFile{{Name: "rack.yaml", Content: "hosts:\n" + h1.inventory()}}, v1.RepairTicket{}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tenants().Create(ctx, v1.NewTenant{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	cluster, err := c.Clusters().Create(ctx, v1.NewCluster{Name: "acme-1", Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	h1.serve(dir, address)
	token, err := os.ReadFile(filepath.Join(dir, "operator.token"))
	if err != nil {
		t.Fatal(err)
	}
	p := webtest.Open(t, "https://"+address+"/", "/readyz", "/v1/fabric/routes")
	p.SignIn(strings.TrimSpace(string(token)))
	p.AwaitText("1 in inventory.")
	p.AwaitText("settled")
	p.Await(`[...document.querySelectorAll('.badge.good')].some((b) => b.textContent === 'Master')`)
	p.AwaitText("No faults.")
	p.Document("overview")

	p.Show("#/clusters/acme-1", "Cluster acme-1")
	p.AwaitText(cluster.PKey.String())
	if _, err := c.Hosts().Assign(ctx, "h1", v1.Assignment{Cluster: "acme-1"}); err != nil {
		t.Fatal(err)
	}
	p.AwaitText("run the agent on the host")
	h1.provision(t)
	p.Await(`document.querySelector('tr[data-key=h1]').innerText.includes('admitted')`)
	file := p.Downloads()
	p.Click(`form[aria-label=Receipt] button`)
	data := file("receipt-acme-*.json")
	keys, err := c.Receipts().Keys(ctx)
	if err != nil || len(keys.Keys) == 0 {
		t.Fatalf("keys of receipts: %+v, %v", keys, err)
	}
	var pems strings.Builder
	for _, k := range keys.Keys {
		pems.WriteString(k.PEM)
	}
	public, err := receipt.ParsePublicKeys([]byte(pems.String()))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := receipt.Verify(data, public, time.Now()); err != nil || r.Predicate.Tenant != "acme" {
		t.Errorf("the receipt that the page downloaded: %v", err)
	}
	p.AwaitText("Audit log")
	p.AwaitText("Download again")
	p.Document("cluster")
	p.Show("#/clusters", "Tenants")
	p.AwaitText("acme-1")
	p.Document("tenants")

	p.Show("#/fabric", "Fabric")
	p.AwaitText("3 switches, 4 ports of hosts, 2 pairs of switches with links.")
	p.AwaitText("admitted: 1")
	p.Type(`input[type=search]`, "h1\r")
	p.AwaitText("tenant acme, Active")
	p.Await(`(() => { // The host is in the middle of the map, in the color of its phase.
		const c = document.querySelector('canvas');
		const dot = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
		dot.drawImage(c, -c.width / 2, -c.height / 2);
		return [...dot.getImageData(0, 0, 1, 1).data].join() === '35,145,90,255';
	})()`)
	p.Type(`input[data-key=from]`, "h1")
	p.Type(`input[data-key=to]`, "nowhere\r")
	p.AwaitText("nowhere")
	p.Type(`input[data-key=to]`, strings.Repeat("\b", len("nowhere"))+"h2\r")
	p.AwaitText("From h1 to h2")
	route, err := c.Fabric().Routes(ctx, "h1", "h2")
	if err != nil {
		t.Fatal(err)
	}
	for i, way := range []v1.FabricRoute{route.There, route.Back} {
		want := ""
		for n, h := range way.Hops {
			want += fmt.Sprintf("%d %s %d %d;", n, h.Name, h.In, h.Out)
		}
		shown := webtest.Value[string](p, fmt.Sprintf(`[...document.querySelectorAll('.path table')[%d].tBodies[0].rows].map((r) =>
			['Hop', 'Node', 'In', 'Out'].map((c) => r.querySelector('[data-label=' + c + ']').textContent || '0').join(' ') + ';').join('')`, i))
		if shown != want || len(way.Hops) < 3 {
			t.Errorf("the path has the hops %q, want %q", shown, want)
		}
	}
	p.Document("fabric")
	p.Click(`.chosen a`)
	p.AwaitText("Host h1")

	p.Show("#/keys", "Keys")
	p.AwaitText("h1/1")
	p.AwaitText("managed")
	p.Document("keys")

	p.Show("#/profile", "Profile")
	for _, name := range []string{"general", "bare-metal-cloud", "secured-bare-metal-cloud"} {
		is, err := c.Profile(ctx, v1.ProfileQuery{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		p.AwaitText(fmt.Sprintf("%d %% %s", is.Score, name))
		p.AwaitText(fmt.Sprintf("%d hold, %d fail, %d unknown", is.Count.Holds, is.Count.Fails, is.Count.Unknown))
	}
	p.AwaitText("escrow-rehearsed")
	p.Document("profile")

	p.Show("#/instances", "Instances")
	p.AwaitText("steady")
	p.AwaitText("This instance is the only one.")
	p.Document("instances")

	p.Show("#/audit", "Audit")
	p.AwaitText("whole")
	p.AwaitText("receipt.issue")
	p.Illustrate("audit")

	p.Show("#/violations", "Violations")
	p.AwaitText("Events appear as they happen.")
	if _, err := f.Inject(sim.Endpoint{Node: "h1", Port: 1}, sim.Data{
		SLID: f.PortInfo("h1", 1).LID, DLID: f.PortInfo("h2", 1).LID, PKey: ib.PKey(0x8765), DestQP: 9, Payload: 64,
	}); err != nil {
		t.Fatal(err)
	}
	p.AwaitText("p-key")
	p.Illustrate("violations")
	p.Click(`td[data-label='Switch port'] a`)
	p.AwaitText("Switch port " + h1.place)
	p.AwaitText("At the other end")
	p.AwaitText("p-key")
	p.Document("port")
	p.Click(`.facts a`)
	p.AwaitText("Host h1")
	p.Await(`document.querySelector('.state.here').textContent === 'admitted'`)
	p.AwaitText("evidence.seal")
	p.Document("host")

	// Last, because a proof changes other pages.
	p.Show("#/fabric", "Fabric")
	p.AwaitText("admitted: 1")
	if _, err := c.VerifyIsolation(ctx, v1.IsolationQuery{}); err != nil {
		t.Fatal(err)
	}
	proof, err := c.IsolationPorts(ctx, v1.IsolationPortQuery{})
	if err != nil || len(proof.Items) != 1 || proof.Items[0].Place.String() != h1.place {
		t.Fatalf("the proof is of %+v, %v", proof, err)
	}
	webtest.Value[bool](p, `(() => { const s = document.querySelector('form[aria-label=Map] select'); s.value = 'proof'; return s.dispatchEvent(new Event('change')); })()`)
	p.AwaitText(map[string]string{v1.Isolated: "isolated: 1", v1.Leaks: "leak: 1", v1.Unproven: "unproven: 1"}[proof.Items[0].Verdict])
	p.AwaitText("not examined: 3") // the inventory has no other host
	p.Look("fabric proof")
	links := len(knownLoad(t, c))
	webtest.Value[bool](p, `(() => { const s = document.querySelector('form[aria-label=Map] select'); s.value = 'load'; return s.dispatchEvent(new Event('change')); })()`)
	p.AwaitText(fmt.Sprintf("Load of %d of %d links", links, links))
	p.AwaitText("unknown: 0")
	p.AwaitText("The busiest links:")
	p.Look("fabric load")
	p.Quiet()
}
