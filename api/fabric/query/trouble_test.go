package query_test

import (
	"strings"
	"testing"

	"portcullis/api/fabric/query"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/fault"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// linked is two switches with a host each, all links 4x EDR, and all ports
// Active with one MTU.
func linked() *topotest.Kit {
	k := topotest.Chain(2, 1)
	for i := range k.NumPorts() {
		change(k, topo.PortID(i), func(p *topo.Port) {
			p.Width, p.WidthOffered = ib.Width4x, ib.Width4x|ib.Width1x
			p.Speed, p.SpeedOffered, p.NeighborMTU = ib.EDR, ib.EDR, ib.MTU4096
		})
	}
	return k
}

func change(k *topotest.Kit, id topo.PortID, f func(*topo.Port)) {
	p := k.Port(id)
	f(&p)
	k.SetPort(id, p)
}

func shown(k *topotest.Kit) *query.Observer {
	o := query.New(query.Options{})
	o.OnView(&sm.View{Fabric: k.Fabric(), State: ib.SMMaster, Settled: true})
	return o
}

// TestWhatNobodyReportedIsFound: a problem of a link shows in its state.
func TestWhatNobodyReportedIsFound(t *testing.T) {
	leaf := func(k *topotest.Kit, n int) topo.PortID { return k.PortOf(0, ib.PortNum(n)) }
	for _, tt := range []struct {
		name  string
		spoil func(k *topotest.Kit)
		want  string // of switch1_1/3, the trunk
	}{
		{"well", func(*topotest.Kit) {}, ""},
		{"narrow", func(k *topotest.Kit) {
			change(k, leaf(k, 3), func(p *topo.Port) { p.Width = ib.Width1x })
		}, "degraded 4x EDR"},
		{"slow", func(k *topotest.Kit) {
			change(k, leaf(k, 3), func(p *topo.Port) { p.Speed = ib.SDR })
		}, "degraded 4x EDR"},
		{"slow because one end was told so", func(k *topotest.Kit) {
			change(k, leaf(k, 3), func(p *topo.Port) { p.Speed, p.SpeedOffered = ib.SDR, ib.SDR })
		}, ""},
		{"fast", func(k *topotest.Kit) {
			change(k, leaf(k, 3), func(p *topo.Port) { p.Speed = ib.XDR })
		}, ""},
		{"not active", func(k *topotest.Kit) {
			change(k, leaf(k, 3), func(p *topo.Port) { p.State = ib.PortArmed })
		}, "the link is up and the port is not active, but Armed"},
		{"MTU", func(k *topotest.Kit) {
			change(k, leaf(k, 3), func(p *topo.Port) { p.NeighborMTU = ib.MTU2048 })
		}, "MTU 2048 here and 4096 at the other end"},
		{"nothing behind", func(k *topotest.Kit) { k.Disconnect(leaf(k, 3)) }, "the link is up, and nothing is known behind it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			k := linked()
			tt.spoil(k)
			o := shown(k)
			page := ports(t, o, v1.PortQuery{Switch: "switch1_1"})
			p := page.Items[3]
			got := p.Problem
			if p.Degraded != "" {
				got += "degraded " + p.Degraded
			}
			if got != tt.want {
				t.Errorf("port %d of %s: %q, want %q", p.Num, p.Name, got, tt.want)
			}
			listed := len(ports(t, o, v1.PortQuery{Problem: true}).Items) > 0
			if listed != (tt.want != "") {
				t.Errorf("listed with problems: %v", listed)
			}
			links, err := o.Links(t.Context(), v1.LinkQuery{Degraded: true})
			must(t, links, err)
			over, err := o.Overview(t.Context())
			must(t, over, err)
			if slow := strings.HasPrefix(tt.want, "degraded"); (len(links.Items) == 1) != slow || (over.Degraded == 1) != slow {
				t.Errorf("%d links degraded, counted %d", len(links.Items), over.Degraded)
			}
		})
	}
}

// TestUpIsWhetherANodeAnswers: other things that are wrong with a switch do not
// make it one that is down.
func TestUpIsWhetherANodeAnswers(t *testing.T) {
	o := query.New(query.Options{})
	o.OnView(&sm.View{Fabric: linked().Fabric(), State: ib.SMMaster, Settled: true, Faults: []fault.Fault{
		{Key: fault.Key{Kind: fault.NoEnforcement, GUID: topotest.SwitchGUID(1, 1)}, Text: "a"},
		{Key: fault.Key{Kind: fault.NodeSilent, GUID: topotest.SwitchGUID(1, 2), Place: ib.Place{Switch: topotest.SwitchGUID(1, 1), Port: 3}}, Text: "b"},
	}})
	write, err := o.Devices()
	must(t, write, err)
	var b strings.Builder
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`infiniband_switch_up{guid="0x0010000100000001",switch="switch1_1"} 1`, `infiniband_switch_up{guid="0x0010000100000002",switch="switch1_2"} 0`,
	} {
		if !strings.Contains(b.String(), want+"\n") {
			t.Errorf("lacks %s:\n%s", want, &b)
		}
	}
}

// TestTwins: two nodes with one GUID are both listed, page by page, and reported; a series is written once.
func TestTwins(t *testing.T) {
	k := linked()
	twin := k.AddNode(topo.Node{GUID: topotest.HostGUID(0), Type: ib.NodeCA, NumPorts: 1, Description: "thief"})
	change(k, k.PortOf(twin, 1), func(p *topo.Port) { p.GUID = topotest.HostGUID(0) + 1 })
	o := shown(k)
	var names []string
	q := v1.NodeQuery{PageQuery: v1.PageQuery{Limit: 1}}
	for {
		page, err := o.Nodes(t.Context(), q)
		must(t, page, err)
		for _, n := range page.Items {
			names = append(names, n.Name)
			if twins := n.GUID == topotest.HostGUID(0); twins != (n.Problem == "several nodes show this GUID") {
				t.Errorf("%s: problem %q", n.Name, n.Problem)
			}
		}
		if q.After = page.Next; page.Next == "" {
			break
		}
	}
	if got := strings.Join(names, " "); got != "switch1_1 switch1_2 h0 thief h1" {
		t.Errorf("nodes %s", got)
	}
	if _, err := o.Routes(t.Context(), topotest.HostGUID(0).String(), "h1"); err == nil {
		t.Error("a GUID that two show names one of them")
	}
	write, err := o.Devices()
	must(t, write, err)
	var b strings.Builder
	if err := write(&b); err != nil || strings.Count(b.String(), "infiniband_hca_info{") != 2 {
		t.Errorf("%v: %s", err, &b)
	}
	dump, err := o.Dump(query.FormatDiscover, "")
	must(t, dump, err)
	b.Reset()
	if err := dump(&b); err != nil || strings.Contains(b.String(), "thief") {
		t.Errorf("%v: the dump has both: %s", err, &b)
	}
}

// TestDumpsAreBounded: no more than a few are written at a time, and one that
// ends makes room.
func TestDumpsAreBounded(t *testing.T) {
	o := shown(linked())
	var open []func() error
	for {
		write, err := o.Dump(query.FormatGUIDs, "")
		if err != nil {
			break
		}
		open = append(open, func() error { return write(&strings.Builder{}) })
		if len(open) > 100 {
			t.Fatal("a hundred dumps at once")
		}
	}
	for _, end := range open {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.Dump(query.FormatGUIDs, ""); err != nil {
		t.Errorf("after all ended: %v", err)
	}
}

// FuzzCursor: whatever is given as a cursor is refused or begins a page.
func FuzzCursor(f *testing.F) {
	o := shown(linked())
	f.Add("ABAAAQAAAAEAAAABAg")
	f.Add("")
	f.Add("7")
	f.Fuzz(func(t *testing.T, after string) {
		q := v1.PageQuery{After: after, Limit: 2}
		if page, err := o.Ports(t.Context(), v1.PortQuery{PageQuery: q}); err == nil && len(page.Items) > 2 {
			t.Errorf("%d items", len(page.Items))
		}
		if page, err := o.Nodes(t.Context(), v1.NodeQuery{PageQuery: q}); err == nil && len(page.Items) > 2 {
			t.Errorf("%d items", len(page.Items))
		}
		if page, err := o.Links(t.Context(), v1.LinkQuery{PageQuery: q}); err == nil && len(page.Items) > 2 {
			t.Errorf("%d items", len(page.Items))
		}
	})
}
