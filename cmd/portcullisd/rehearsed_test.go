package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/driver/factfile"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/vault"
	"portcullis/fabricsm/vault/escrow"
)

// TestKitRehearsed: the proof that a kit of the service's own keys makes is recorded, and the rule of the security profile holds. One that
// was altered changes nothing.
func TestKitRehearsed(t *testing.T) {
	t.Parallel()
	f := servedKeyFabric(t, sim.Modern())
	dir, address := install(t, "--fabric-port", "ibsim:"+f.client.Socket+"/sm")
	start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()
	eventually(t, "all devices have keys", func() (bool, string) {
		k, err := c.Keys().Get(ctx)
		return err == nil && k.Devices["held"] == len(f.endPorts()), ""
	})
	if got := escrowRule(t, c); got.State != v1.RuleFails {
		t.Fatalf("before: %+v", got)
	}
	stored, err := c.Keys().Sealed(ctx)
	if err != nil {
		t.Fatal(err)
	}
	root, err := vault.FileRoot(filepath.Join(dir, "keys.root"))
	if err != nil {
		t.Fatal(err)
	}
	facts, err := factfile.Read("facts", strings.NewReader(strings.Join(stored.Facts, "\n")+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := keystore.Read(facts, root)
	if err != nil {
		t.Fatal(err)
	}
	kit := escrow.Contents{Fabric: opened.Vault, Made: time.Now().Add(-time.Minute), Master: opened.Master, Check: opened.Check, Records: opened.Records, Cycles: opened.Cycles}
	p, err := kit.Prove(kit.Digests())
	if err != nil {
		t.Fatal(err)
	}
	proof := v1.KeyRehearsal{Fabric: p.Fabric, KitMade: p.KitMade, Listed: p.Listed, Keys: p.Keys, Devices: p.Devices, List: p.List, Seal: p.Seal}
	altered := proof
	altered.Listed = altered.Listed.Add(time.Second)
	if _, err := c.Keys().Rehearsed(ctx, altered); err == nil || !strings.Contains(err.Error(), "altered") {
		t.Errorf("altered: %v", err)
	}
	if got := escrowRule(t, c); got.State != v1.RuleFails {
		t.Errorf("after an altered proof: %+v", got)
	}
	r, err := c.Keys().Rehearsed(ctx, proof)
	if err != nil || r.Keys < len(f.endPorts()) {
		t.Fatalf("recorded %+v, %v", r, err)
	}
	if got := escrowRule(t, c); got.State != v1.RuleHolds {
		t.Errorf("after: %+v", got)
	}
}

// escrowRule returns the finding of the rule that a kit was rehearsed.
func escrowRule(t *testing.T, c *client.Client) v1.ProfileFinding {
	t.Helper()
	p, err := c.Profile(t.Context(), v1.ProfileQuery{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Rules {
		if r.Rule == "escrow-rehearsed" {
			return r
		}
	}
	t.Fatal("there is no rule escrow-rehearsed")
	return v1.ProfileFinding{}
}
