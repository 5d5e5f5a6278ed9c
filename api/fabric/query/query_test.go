package query_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/fabric/query"
	"portcullis/api/fabric/query/seentest"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm/violation"
)

// tree is an Observer that was shown Tree being brought up.
func tree(t *testing.T, faults map[string]sim.Fault) *query.Observer {
	t.Helper()
	show := seentest.Run(t, seentest.Tree, seentest.Grants(), faults)
	hosts := seentest.Hosts()
	o := query.New(query.Options{Hosts: func() map[ib.GUID]string { return hosts }})
	for _, e := range show.Events {
		o.OnEvent(e)
	}
	o.OnView(show.Settled())
	return o
}

func must[T any](t *testing.T, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// portText is a port in one line.
func portText(p *v1.FabricPort) string {
	peer := "-"
	if p.Peer != nil {
		peer = fmt.Sprintf("%s/%d", p.Peer.Name, p.Peer.Num)
	}
	return strings.TrimSpace(fmt.Sprintf("%s/%d %s %s %s %s %v %s %s", p.Name, p.Num, p.State, p.Width, p.Speed, peer, p.PKeys, p.Host, p.Problem))
}

func TestPorts(t *testing.T) {
	o := tree(t, nil)
	for _, tt := range []struct {
		name string
		q    v1.PortQuery
		want []string
	}{
		{"host of the inventory", v1.PortQuery{Host: "compute-1"}, []string{"h1 mlx5_0/1 Active 4x EDR leaf1/2 [0x7fff 0x8001] compute-1"}},
		{"host by description", v1.PortQuery{Host: "ConnectX"}, []string{
			"0x0020000000000300/1 Active 4x EDR leaf2/2 [0x7fff]", "0x0020000000000400/1 Active 1x EDR leaf2/3 [0x7fff]",
		}},
		{"node by GUID", v1.PortQuery{Node: "0x0020000000000200"}, []string{"h2 mlx5_0/1 Active 4x EDR leaf2/1 [0x7fff 0x8001] compute-2"}},
		{"hosts", v1.PortQuery{Type: "CA", PageQuery: v1.PageQuery{Limit: 1}}, []string{"sm/1 Active 4x EDR leaf1/1 [0xffff]"}},
		{"problems", v1.PortQuery{Problem: true}, nil},
		{"armed", v1.PortQuery{State: "Armed"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ports(t, o, tt.q)
			var lines []string
			for i := range got.Items {
				lines = append(lines, portText(&got.Items[i]))
			}
			if d := cmp.Diff(lines, tt.want); d != "" {
				t.Errorf("(-got +want):\n%s", d)
			}
		})
	}
}

func ports(t *testing.T, o *query.Observer, q v1.PortQuery) *v1.Page[v1.FabricPort] {
	t.Helper()
	p, err := o.Ports(t.Context(), q)
	return must(t, p, err)
}

// TestPagesHoldEverythingOnce reads lists in pages of every size.
func TestPagesHoldEverythingOnce(t *testing.T) {
	o := tree(t, nil)
	whole := ports(t, o, v1.PortQuery{})
	if len(whole.Items) != 2*7 || whole.Next != "" || !whole.Settled {
		t.Fatalf("%d ports, next %q, settled %v; want both ends of 7 cables", len(whole.Items), whole.Next, whole.Settled)
	}
	for size := 1; size <= len(whole.Items)+1; size++ {
		var got []v1.FabricPort
		q := v1.PortQuery{PageQuery: v1.PageQuery{Limit: size}}
		for {
			page := ports(t, o, q)
			if len(page.Items) > size {
				t.Fatalf("page of %d, want %d", len(page.Items), size)
			}
			got = append(got, page.Items...)
			if q.After = page.Next; page.Next == "" {
				break
			}
		}
		if d := cmp.Diff(got, whole.Items); d != "" {
			t.Fatalf("pages of %d (-got +want):\n%s", size, d)
		}
	}
	nodes, err := o.Nodes(t.Context(), v1.NodeQuery{PageQuery: v1.PageQuery{Limit: 5}})
	must(t, nodes, err)
	rest, err := o.Nodes(t.Context(), v1.NodeQuery{PageQuery: v1.PageQuery{After: nodes.Next}})
	must(t, rest, err)
	if len(nodes.Items) != 5 || len(rest.Items) != 3 || rest.Items[0].GUID <= nodes.Items[4].GUID {
		t.Errorf("nodes in pages of %d and %d, want 5 and 3", len(nodes.Items), len(rest.Items))
	}
	links, err := o.Links(t.Context(), v1.LinkQuery{PageQuery: v1.PageQuery{Limit: 4}})
	must(t, links, err)
	more, err := o.Links(t.Context(), v1.LinkQuery{PageQuery: v1.PageQuery{After: links.Next}})
	must(t, more, err)
	if len(links.Items)+len(more.Items) != 7 {
		t.Errorf("%d and %d links, want 7 together", len(links.Items), len(more.Items))
	}
	tables, err := o.Tables(t.Context(), v1.PageQuery{Limit: 2})
	must(t, tables, err)
	last, err := o.Tables(t.Context(), v1.PageQuery{After: tables.Next})
	must(t, last, err)
	if len(tables.Items) != 2 || len(last.Items) != 1 || last.Next != "" {
		t.Errorf("tables in pages of %d and %d, want 2 and 1", len(tables.Items), len(last.Items))
	}
	entries, err := o.Table(t.Context(), "leaf1", v1.PageQuery{Limit: 5})
	must(t, entries, err)
	others, err := o.Table(t.Context(), "leaf1", v1.PageQuery{After: entries.Next})
	must(t, others, err)
	if len(entries.Items) != 5 || len(others.Items) != 3 || others.Items[0].LID != 6 {
		t.Errorf("entries in pages of %d and %d, want 5 and 3", len(entries.Items), len(others.Items))
	}
}

func TestSilentHostIsShownWhereItIs(t *testing.T) {
	o := tree(t, map[string]sim.Fault{"h3": {Silent: true}})
	page := ports(t, o, v1.PortQuery{Problem: true})
	if len(page.Items) != 1 || page.Items[0].Name != "leaf2" || page.Items[0].Num != 2 || !strings.Contains(page.Items[0].Problem, "nothing answers behind") {
		t.Errorf("ports with problems: %+v, want leaf2/2", page.Items)
	}
	over, err := o.Overview(t.Context())
	must(t, over, err)
	if len(over.Faults) != 1 || over.Faults[0].Kind != "link-dead" || over.Nodes.CAs != 4 || over.Ports.Active != 12 || over.PKeys != 1 {
		t.Errorf("overview %+v", over)
	}
}

func TestRoutes(t *testing.T) {
	o := tree(t, nil)
	for _, tt := range []struct {
		name, from, to string
		hops           string
		shared         int
		problems       string
	}{
		{"hosts of a partition", "compute-1", "h2 mlx5_0/1", "h1 mlx5_0 leaf1 spine1 leaf2 h2 mlx5_0", 1, ""},
		{"no partition", "0x0020000000000101", "0x0020000000000300", "h1 mlx5_0 leaf1 spine1 leaf2 0x0020000000000300", 0, "no shared partition: 0x7fff 0x8001 and 0x7fff"},
		{"by LID, to the subnet manager", "5", "4", "h1 mlx5_0 leaf1 sm", 1, ""},
		{"to a switch", "compute-1", "spine1", "h1 mlx5_0 leaf1 spine1", 0, "no shared partition: 0x7fff 0x8001 and 0x7fff"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := o.Routes(t.Context(), tt.from, tt.to)
			must(t, r, err)
			var names []string
			for _, h := range r.There.Hops {
				names = append(names, h.Name)
			}
			if got := strings.Join(names, " "); got != tt.hops || len(r.Back.Hops) != len(r.There.Hops) {
				t.Errorf("hops %q and %d back, want %q", got, len(r.Back.Hops), tt.hops)
			}
			if len(r.Shared) != tt.shared || strings.Join(r.Problems, "; ") != tt.problems {
				t.Errorf("shared %v, problems %q; want %d and %q", r.Shared, r.Problems, tt.shared, tt.problems)
			}
		})
	}
	r, err := o.Routes(t.Context(), "compute-1", "compute-2")
	must(t, r, err)
	if trunk := r.There.Hops[1]; trunk.Load == 0 || trunk.In != 2 || trunk.Out < 7 || trunk.LID != 1 || r.There.Rate != 100_000 {
		t.Errorf("hop over the trunk %+v of %+v", trunk, r.There)
	}
}

// TestWhatIsNotThere holds the errors, their codes and that they say what to do.
func TestWhatIsNotThere(t *testing.T) {
	o := tree(t, nil)
	empty := query.New(query.Options{})
	names := map[ib.GUID]string{0x9999: "compute-9"}
	away := query.New(query.Options{Hosts: func() map[ib.GUID]string { return names }})
	away.OnView(seentest.Run(t, seentest.Tree, seentest.Grants(), nil).Settled())
	ctx := t.Context()
	for _, tt := range []struct {
		name string
		ask  func() error
		code string
		kind refusal.Kind
	}{
		{"nothing seen", func() error { _, err := empty.Overview(ctx); return err }, "fabric_unseen", refusal.Unavailable},
		{"unknown node", func() error { _, err := o.Ports(ctx, v1.PortQuery{Node: "x"}); return err }, "node_unknown", refusal.NotFound},
		{"unknown host", func() error { _, err := o.Ports(ctx, v1.PortQuery{Host: "x"}); return err }, "host_unknown", refusal.NotFound},
		{"host that is not seen", func() error { _, err := away.Ports(ctx, v1.PortQuery{Host: "compute-9"}); return err }, "host_unseen", refusal.NotFound},
		{"way to a host that is not seen", func() error { _, err := away.Routes(ctx, "sm", "compute-9"); return err }, "host_unseen", refusal.NotFound},
		{"no switch", func() error { _, err := o.Ports(ctx, v1.PortQuery{Switch: "sm"}); return err }, "not_a_switch", refusal.Invalid},
		{"two of a name", func() error { _, err := o.Routes(ctx, "ConnectX", "sm"); return err }, "name_ambiguous", refusal.Invalid},
		{"unknown LID", func() error { _, err := o.Routes(ctx, "99", "sm"); return err }, "LID_unknown", refusal.NotFound},
		{"no such port", func() error { _, err := o.Routes(ctx, "sm/2", "sm"); return err }, "port_unknown", refusal.NotFound},
		{"cursor", func() error {
			_, err := o.Ports(ctx, v1.PortQuery{PageQuery: v1.PageQuery{After: "zz"}})
			return err
		}, "cursor_invalid", refusal.Invalid},
		{"cursor of a table", func() error { _, err := o.Table(ctx, "leaf1", v1.PageQuery{After: "-1"}); return err }, "cursor_invalid", refusal.Invalid},
		{"format", func() error { _, err := o.Dump("x", ""); return err }, "format_unknown", refusal.Invalid},
		{"whole format", func() error { _, err := o.Dump(query.FormatGUIDs, "leaf1"); return err }, "format_whole", refusal.Invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.ask()
			e, ok := errors.AsType[*refusal.Error](err)
			if !ok || e.Code != tt.code || e.Status != tt.kind || e.Hint == "" {
				t.Errorf("got %+v, want code %s, kind %v and a hint", err, tt.code, tt.kind)
			}
		})
	}
}

// TestNamesFollowTheInventory: names change without a new view.
func TestNamesFollowTheInventory(t *testing.T) {
	show := seentest.Run(t, seentest.Tree, seentest.Grants(), nil)
	hosts := map[ib.GUID]string{}
	o := query.New(query.Options{Hosts: func() map[ib.GUID]string { return hosts }})
	o.OnView(show.Settled())
	if _, err := o.Ports(t.Context(), v1.PortQuery{Host: "compute-1"}); err == nil {
		t.Fatal("a host was found before inventory named it")
	}
	hosts = seentest.Hosts()
	if page := ports(t, o, v1.PortQuery{Host: "compute-1"}); len(page.Items) != 1 {
		t.Errorf("%d ports of compute-1, want 1", len(page.Items))
	}
}

// TestProgressTellsAll: events are shown with their names, and the fabric is counted.
func TestProgressTellsAll(t *testing.T) {
	p, err := tree(t, nil).Progress(t.Context())
	must(t, p, err)
	if !p.Settled || p.Phase != "settled" || p.Sent == 0 || p.Answered != p.Sent || p.Links != 7 || len(p.SMPs) < 5 || p.Out != 0 {
		t.Errorf("progress %+v", p)
	}
	last := p.Events[len(p.Events)-1]
	if last.Event != "settled" || last.Fields["smps"] == "" || last.Fields["seconds"] == "" || last.Fields["cause"] == "" {
		t.Errorf("last event %+v", last)
	}
	if n := len(p.Settles); n == 0 || p.Settles[n-1].Revision != 7 {
		t.Errorf("settled %+v, want revision 7", p.Settles)
	}
	placed := 0
	for _, e := range p.Events {
		if e.Event == "port-placed" && e.Fields["guid"] != "" && e.Fields["lid"] != "" {
			placed += int(e.Count)
		}
	}
	if placed != 5 {
		t.Errorf("%d ports placed, want those of the 5 CAs", placed)
	}
}

// A request that subnet administration drops has a name of its own, and names its sender.
func TestEventsOfAdministration(t *testing.T) {
	e := &sa.Violation{Violation: trust.Violation{Verdict: trust.WrongKey, GUID: 0x10, Count: 3}}
	if n := query.EventName(e); n != "sa-violation" || n == query.EventName(&violation.Violation{}) {
		t.Errorf("it is called %s", n)
	}
	f := query.EventFields(e)
	if f["guid"] != ib.GUID(0x10).String() || f["count"] != "3" || f["verdict"] != trust.WrongKey.String() {
		t.Errorf("fields %v", f)
	}
}

func TestEventNames(t *testing.T) {
	// Held for programs that read the lines.
	want := []string{"membership-applied", "port-placed", "routed", "settled", "state-changed"}
	p, err := tree(t, nil).Progress(t.Context())
	must(t, p, err)
	names := map[string]bool{}
	for _, e := range p.Events {
		names[e.Event] = true
	}
	for _, n := range want {
		if !names[n] {
			t.Errorf("no event is called %s: %v", n, names)
		}
	}
}
