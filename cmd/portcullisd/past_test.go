package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/sim"
)

// TestPastOfARunningService: a host attests and is admitted. The service shows the fabric as it was before and after that, also once it was
// killed and started again, with the time between as not known.
func TestPastOfARunningService(t *testing.T) {
	t.Parallel()
	vendor := tpmtest.ShortDir(t)
	tpmtest.Require(t)
	f := servedKeyFabric(t, sim.Modern())
	h1 := f.machine(t, vendor, "h1")
	dir, address := install(t, "--fabric-port", "ibsim:"+f.client.Socket+"/sm")
	trustVendor(t, dir, h1)
	d := start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()
	trustBoots(t, c, c, h1)
	if _, err := c.Inventory().Import(ctx, []v1.InventoryFile{{Name: "rack.yaml", Content: "hosts:\n" + h1.inventory()}}, v1.RepairTicket{}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tenants().Create(ctx, v1.NewTenant{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Clusters().Create(ctx, v1.NewCluster{Name: "acme-1", Tenant: "acme"}); err != nil {
		t.Fatal(err)
	}
	h1.serve(dir, address)
	known := func(what string, holds func(*v1.FabricHistory) bool) (out *v1.FabricHistory) {
		t.Helper()
		eventually(t, what, func() (bool, string) {
			var err error
			if out, err = c.Fabric().History(ctx); err != nil {
				return false, err.Error()
			}
			return holds(out), fmt.Sprintf("%+v", out)
		})
		return out
	}
	known("the beginning", func(k *v1.FabricHistory) bool { return !k.From.IsZero() && k.Failure == "" })
	if _, err := c.Hosts().Assign(ctx, "h1", v1.Assignment{Cluster: "acme-1"}); err != nil {
		t.Fatal(err)
	}
	h1.provision(t)
	var admitted time.Time
	eventually(t, "the change of h1 to admitted", func() (bool, string) {
		var all []v1.PastChange
		for page, err := range c.Fabric().Changes(ctx, v1.PastChangeQuery{}) {
			if err != nil {
				return false, err.Error()
			}
			all = append(all, page.Items...)
		}
		i := slices.IndexFunc(all, func(c v1.PastChange) bool {
			return c.Kind == "host" && c.Object == "h1" && slices.ContainsFunc(c.Fields, func(f v1.PastField) bool { return f.Field == "phase" && f.Now == "admitted" })
		})
		if i >= 0 {
			admitted = all[i].Time
		}
		return i >= 0, fmt.Sprintf("%+v", all)
	})
	phase := func(at time.Time) string {
		t.Helper()
		p, err := c.Fabric().Past(ctx, at)
		if err != nil {
			t.Fatal(err)
		}
		if !p.Known || len(p.Switches) == 0 {
			return "not known: " + p.Why
		}
		for _, port := range p.Ports {
			if port.Host == "h1" {
				return port.Phase + " " + port.Tenant
			}
		}
		return "not there"
	}
	before := admitted.Add(-time.Millisecond)
	was := phase(before)
	if now := phase(admitted); now != "admitted acme" || was == now {
		t.Errorf("h1 was %q before it was admitted, and %q then", was, now)
	}
	d.kill()
	start(t, dir)
	k := known("the time after the start", func(k *v1.FabricHistory) bool { return len(k.Gaps) == 1 && k.Until.After(k.Gaps[0].Until) })
	if got := phase(before); got != was {
		t.Errorf("after the start h1 was %q before it was admitted, want %q", got, was)
	}
	if got := phase(admitted); got != "admitted acme" {
		t.Errorf("after the start h1 was %q, want it admitted", got)
	}
	middle := k.Gaps[0].From.Add(k.Gaps[0].Until.Sub(k.Gaps[0].From) / 2)
	if p, err := c.Fabric().Past(ctx, middle); err != nil || p.Known || p.Why != k.Gaps[0].Why {
		t.Errorf("between the two: %+v, %v, want it not known: %s", p, err, k.Gaps[0].Why)
	}
}
