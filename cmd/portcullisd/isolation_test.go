package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"portcullis/api/client"
	"portcullis/api/events"
	v1 "portcullis/api/v1"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport"
)

// TestProofFollowsAdmission examines the tenants once, at request. A host that is admitted afterwards is in the proof without another
// examination: the service reads what its Subnet Manager touched. A P_Key that another program writes is found by the next
// examination, reported, and taken away.
func TestProofFollowsAdmission(t *testing.T) {
	t.Parallel()
	vendor := tpmtest.ShortDir(t)
	tpmtest.Require(t)
	f := servedKeyFabric(t, sim.Modern())
	h1 := f.machine(t, vendor, "h1")
	dir, address := install(t, "--fabric-port", "ibsim:"+f.client.Socket+"/sm")
	trustVendor(t, dir, h1)
	start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()
	trustBoots(t, c, c, h1)
	switches := "switches:\n"
	for i := range f.list.Nodes {
		if n := &f.list.Nodes[i]; n.Type == ib.NodeSwitch {
			switches += fmt.Sprintf("  - {id: %s, guid: \"%v\"}\n", n.Name, n.GUID)
		}
	}
	if _, err := c.Inventory().Import(ctx, []v1.InventoryFile{{Name: "rack.yaml", Content: switches + "hosts:\n" + h1.inventory()}}, v1.RepairTicket{}, false); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tenants().Create(ctx, v1.NewTenant{Name: "acme"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Clusters().Create(ctx, v1.NewCluster{Name: "acme-1", Tenant: "acme"}); err != nil {
		t.Fatal(err)
	}
	var whole *v1.Isolation
	eventually(t, "the tenants are examined", func() (bool, string) {
		var err error
		whole, err = c.VerifyIsolation(ctx, v1.IsolationQuery{})
		return err == nil && whole.Bounds.Unread == 0 && whole.Administration.Verdict != v1.SANotExamined, fmt.Sprintf("%+v, %v", whole, err)
	})
	h1.serve(dir, address)
	if _, err := c.Hosts().Assign(ctx, "h1", v1.Assignment{Cluster: "acme-1"}); err != nil {
		t.Fatal(err)
	}
	h1.provision(t)
	var last *v1.IsolationKept
	eventually(t, "the proof has the tenant", func() (bool, string) {
		var err error
		last, err = c.LastIsolation(ctx)
		return err == nil && slices.ContainsFunc(last.Found.Parties, func(p v1.IsolationParty) bool { return p.Name == "acme" && p.Found == 1 }), fmt.Sprintf("%+v, %v", last, err)
	})
	// Subnet administration is examined, too, in each of them: of the tenant's host and of others that nothing declares.
	for _, r := range []*v1.Isolation{whole, &last.Found} {
		if a := &r.Administration; a.Verdict != v1.SAConfined || a.Ports < 2 || a.Answers < a.Ports || a.Disclosed != 0 {
			t.Errorf("subnet administration: %+v", a)
		}
	}
	b := &last.Found.Bounds
	if b.Again == nil || !b.Begun.Equal(whole.Bounds.Begun) {
		t.Errorf("the proof that has the tenant: %+v; the examination before: %+v", b, &whole.Bounds)
	}
	driftIsCorrected(t, f, c)
}

// driftIsCorrected has a program with the M_Key of h1 write a P_Key into its table.
func driftIsCorrected(t *testing.T, f *keyFabric, c *client.Client) {
	t.Helper()
	const stray = ib.PKey(0x8777)
	ctx := t.Context()
	f.plant(t, "h1", stray)
	eventually(t, "the P_Key is reported and taken away", func() (bool, string) {
		if _, err := c.VerifyIsolation(ctx, v1.IsolationQuery{}); err != nil {
			return false, err.Error()
		}
		list, err := c.Audit().Events(ctx, v1.EventQuery{Host: "h1", Type: events.DriftEnded})
		ended := err == nil && slices.ContainsFunc(list.Items, func(e v1.Event) bool { return e.Cause == v1.DriftStray })
		return ended, fmt.Sprintf("%+v, %v; table %v", list, err, f.PKeyTable("h1", 1))
	})
	list, err := c.Audit().Events(ctx, v1.EventQuery{Host: "h1", Type: events.DriftFound})
	if err != nil || len(list.Items) != 1 || list.Items[0].Cause != v1.DriftStray || !strings.Contains(list.Items[0].Seen, stray.String()) {
		t.Errorf("events %+v, %v", list, err)
	}
	if table := f.PKeyTable("h1", 1); slices.Contains(table, stray) {
		t.Errorf("the table of h1 is %v", table)
	}
}

// plant writes a P_Key into the first block of the table of port 1 of a host, by its own M_Key.
func (f *keyFabric) plant(t *testing.T, host string, key ib.PKey) {
	t.Helper()
	at, err := f.Station(host, false)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	var table mad.PKeyTable
	copy(table.PKey[:], f.PKeyTable(host, 1))
	table.PKey[len(table.PKey)-1] = key
	p := transport.Packet{LID: ib.PermissiveLID}
	mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodSet, Attr: mad.AttrPKeyTable, TID: 1}, &mad.Route{}, f.PortInfo(host, 1).MKey)
	mad.MustEncode(p.MAD.Data(), &table)
	if in := at.Exchange([]transport.Packet{p}, nil); len(in) != 1 || in[0].MAD.Status() != mad.StatusOK || !slices.Contains(f.PKeyTable(host, 1), key) {
		t.Fatalf("the P_Key was not written: %+v, table %v", in, f.PKeyTable(host, 1))
	}
}
