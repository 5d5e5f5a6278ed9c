package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
)

// clockOffset names how far the clock of a process of a test is set.
const clockOffset = "PORTCULLIS_TEST_CLOCK"

// offset has the program show a time that a test wants.
func offset() {
	by, _ := time.ParseDuration(os.Getenv(clockOffset)) // none means no offset
	wall := func() time.Time { return time.Now().Add(by) }
	os.Exit(run(context.Background(), os.Args[1:], wall, os.Stdin, os.Stdout, os.Stderr))
}

// startAt starts the service with a clock that is set by so much.
func startAt(t *testing.T, dir string, by time.Duration) *process {
	t.Helper()
	return start(t, dir, clockOffset+"="+by.String())
}

func wantGuard(t *testing.T, c *client.Client, name, want string) {
	t.Helper()
	h, err := c.Hosts().Get(t.Context(), "h1")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range h.Status.Guards {
		if g.Name == name && strings.Contains(g.Detail, want) {
			return
		}
	}
	t.Errorf("no guard %s says %q: %+v", name, want, h.Status.Guards)
}

// TestClockSetBack, T146: a period that was over by the highest time that the service has seen is over, also when its clock
// is set back and it is started again. Until the clock has caught up nothing new is granted, and it says so; removals go
// on. An operator can set the recorded time.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	dir, address := install(t, "--fabric-port", nobody())
	edit(t, dir, map[string]string{"# confirm it.\n  two_persons: true": "# confirm it.\n  two_persons: false"}) // one approves a waiver
	c, ctx := operator(t, dir, address), t.Context()
	d := startAt(t, dir, 0)
	text := fmt.Sprintf(`hosts:
- id: h1
  ek_sha256: "%064x"
  hcas:
  - {node_guid: 0x200000, ports: [{port: 1, guid: 0x200001, cable: 0x100000/1}]}
`, 1)
	if _, err := c.Inventory().Import(ctx, []v1.InventoryFile{{Name: "rack.yaml", Content: text}}, v1.RepairTicket{}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tenants().Create(ctx, v1.NewTenant{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Clusters().Create(ctx, v1.NewCluster{Name: "c1", Tenant: "acme"}); err != nil {
		t.Fatal(err)
	}
	assign := func() error {
		_, err := c.Hosts().Assign(ctx, "h1", v1.Assignment{Cluster: "c1", Window: 3600})
		return err
	}
	if err := assign(); err != nil {
		t.Fatal(err)
	}
	wantGuard(t, c, "attested", "no evidence accepted yet")
	waiver, err := c.References().Waive(ctx, v1.NewWaiver{Class: "gpu-node", Expires: time.Now().Add(2 * time.Hour), Reason: "INC-7"})
	if err != nil {
		t.Fatal(err)
	}
	if waiver, err = c.References().Approve(ctx, waiver.Class, waiver.Version, v1.ReferenceApprove{}); err != nil || !waiver.InForce {
		t.Fatalf("%+v, %v", waiver, err)
	}
	d.stop()

	d = startAt(t, dir, 3*time.Hour)
	over := func() {
		t.Helper()
		wantGuard(t, c, "attested", "the provisioning window is closed")
		set, err := c.References().Get(ctx, waiver.Class, waiver.Version)
		if err != nil || set.InForce {
			t.Errorf("%+v, %v; want it over", set, err)
		}
	}
	over()
	d.stop()

	d = startAt(t, dir, time.Minute)
	over()
	if p, ok := errors.AsType[*v1.Problem](assign()); !ok || p.Code != "clock_jump" || !strings.Contains(p.Detail, "2h5") {
		t.Errorf("assign: %v; want it refused because of the clock", p)
	}
	ready := fetch(t, dir, address, "/readyz/clock")
	if !strings.Contains(ready, "behind") || !strings.Contains(ready, "since") || !strings.Contains(ready, `"ok":false`) {
		t.Errorf("readiness of the clock: %s", ready)
	}
	metrics := fetch(t, dir, address, "/metrics")
	for _, want := range []string{"portcullis_clock_believed 0", "portcullis_clock_off_seconds -107"} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	eventually(t, "the event of the jump", func() (bool, string) {
		list, err := c.Audit().Events(ctx, v1.EventQuery{Type: "clock.jump"})
		return err == nil && len(list.Items) == 1 && list.Items[0].Cause == "back" && strings.Contains(fetch(t, dir, address, "/metrics"), `portcullis_clock_jumps_total{cause="back"} 1`), fmt.Sprintf("%+v, %v", list, err)
	})
	if _, err := c.Hosts().Release(client.IfMatch(ctx, client.AnyVersion), "h1"); err != nil {
		t.Errorf("release: %v", err)
	}
	d.stop()

	d = startAt(t, dir, 4*time.Hour)
	if err := assign(); err != nil {
		t.Errorf("the clock has caught up: %v", err)
	}
	wantGuard(t, c, "attested", "no evidence accepted yet")
	if ready := fetch(t, dir, address, "/readyz/clock"); !strings.Contains(ready, `"ok":true`) {
		t.Errorf("readiness of the clock: %s", ready)
	}
	d.stop()

	startAt(t, dir, 0) // 4 h ahead was wrong
	if _, err := c.Clock().Set(ctx, v1.ClockSet{Time: time.Now().Add(4 * time.Hour), Reason: "battery"}); err == nil {
		t.Error("the time was set to another one than the operator named")
	}
	if s, err := c.Clock().Set(ctx, v1.ClockSet{Time: time.Now(), Reason: "battery"}); err != nil || s.State != "steady" || s.SetTimes != 1 {
		t.Errorf("%+v, %v; want the time set", s, err)
	}
	if err := assign(); err != nil {
		t.Errorf("the time was set: %v", err)
	}
	if _, err := c.Clock().Set(ctx, v1.ClockSet{Time: time.Now(), Reason: "again"}); err == nil {
		t.Error("a time that is right was set")
	}
}
