package query_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/fabric/query"
	"portcullis/api/fabric/query/seentest"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/perfmgr"
	"portcullis/fabricsm/topo"
)

const (
	firstLeaf, secondLeaf, spine = ib.GUID(0x0010000100000001), ib.GUID(0x0010000100000002), ib.GUID(0x0010000200000001)
	gigabyte                     = 1_000_000_000
)

// rated returns a rate of the last half minute.
func rated(xmit, rcv uint64) perfmgr.Rate {
	return perfmgr.Rate{State: perfmgr.Rated, Xmit: xmit, Rcv: rcv, Span: 30 * time.Second, Age: 12_340 * time.Millisecond}
}

// loaded returns an observer of the tree whose ports of switches have rates.
func loaded(t *testing.T, rates map[ib.Place]perfmgr.Rate) *query.Observer {
	t.Helper()
	hosts := seentest.Hosts()
	o := query.New(query.Options{Counters: &read{rates: rates}, Hosts: func() map[ib.GUID]string { return hosts }})
	o.OnView(seentest.Run(t, seentest.Tree, seentest.Grants(), nil).Settled())
	return o
}

// loadText is a link in one line.
func loadText(l *v1.FabricLoad) string {
	text := fmt.Sprintf("%s %s %s", l.At, l.To, l.State)
	if r := l.Rate; r != nil {
		text += fmt.Sprintf(" %d %d %v", r.Xmit, r.Rcv, r.Share)
		if r.ByPeer {
			text += " by peer"
		}
	}
	return text
}

func load(t *testing.T, o *query.Observer, q v1.LoadQuery) []string {
	t.Helper()
	page, err := o.Load(t.Context(), q)
	must(t, page, err)
	lines := []string{}
	for i := range page.Items {
		lines = append(lines, loadText(&page.Items[i]))
	}
	return lines
}

// Each link of a switch is listed once with both directions, and the busier one as a share of what it carries.
func TestLoad(t *testing.T) {
	wait := rated(5*gigabyte, gigabyte)
	wait.Waits, wait.Wait = true, 77
	rates := map[ib.Place]perfmgr.Rate{
		{Switch: firstLeaf, Port: 1}:  wait,
		{Switch: firstLeaf, Port: 2}:  rated(0, 0),
		{Switch: spine, Port: 1}:      rated(3*gigabyte, 9*gigabyte), // the trunk is listed at leaf1, which has no rate
		{Switch: secondLeaf, Port: 1}: rated(gigabyte, 13*gigabyte),  // a little more than 100 Gb/s
		{Switch: secondLeaf, Port: 2}: rated(gigabyte, 14*gigabyte),  // by far more
		{Switch: secondLeaf, Port: 3}: rated(gigabyte, 1000),         // of 25 Gb/s
		{Switch: secondLeaf, Port: 7}: rated(gigabyte, 2*gigabyte),
		{Switch: spine, Port: 2}:      rated(7*gigabyte, 7*gigabyte), // not the one that is listed

		{Switch: 0x0020000000000200, Port: 1}: rated(1, 1), // no switch
	}
	o := loaded(t, rates)
	all := []string{
		"leaf1/1 sm/1 known 5000000000 1000000000 0.4",
		"leaf1/2 h1 mlx5_0/1 known 0 0 0",
		"leaf1/7 spine1/1 known 9000000000 3000000000 0.72 by peer",
		"leaf2/1 h2 mlx5_0/1 known 1000000000 13000000000 1",
		"leaf2/2 0x0020000000000300/1 implausible",
		"leaf2/3 0x0020000000000400/1 known 1000000000 1000 0.32",
		"leaf2/7 spine1/2 known 1000000000 2000000000 0.16",
	}
	for _, tt := range []struct {
		name string
		q    v1.LoadQuery
		want []string
	}{
		{"all", v1.LoadQuery{}, all},
		{"trunks", v1.LoadQuery{Trunks: true}, []string{all[2], all[6]}},
		{"of a switch", v1.LoadQuery{Node: "leaf1"}, all[:3]},
		{"of the other end", v1.LoadQuery{Node: "spine1"}, []string{all[2], all[6]}},
		{"of a host", v1.LoadQuery{Node: "compute-2"}, all[3:4]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(load(t, o, tt.q), tt.want); d != "" {
				t.Errorf("(-got +want):\n%s", d)
			}
		})
	}
	page, err := o.Load(t.Context(), v1.LoadQuery{PageQuery: v1.PageQuery{Limit: 3}})
	must(t, page, err)
	rest, err := o.Load(t.Context(), v1.LoadQuery{PageQuery: v1.PageQuery{After: page.Next}})
	must(t, rest, err)
	if len(page.Items) != 3 || len(rest.Items) != 4 || rest.Next != "" {
		t.Errorf("pages of %d and %d links, next %q", len(page.Items), len(rest.Items), rest.Next)
	}
	first, third := page.Items[0], page.Items[2]
	ticks := uint64(77)
	want := v1.FabricLoad{
		Node: firstLeaf, Num: 1, At: "leaf1/1", Peer: 0x0020000000000000, PeerNum: 1, To: "sm/1", Capacity: 12_500_000_000, State: v1.LoadKnown,
		Rate: &v1.LinkRate{Xmit: 5 * gigabyte, Rcv: gigabyte, Share: 0.4, Wait: &ticks, Span: 30, Age: 12.3},
	}
	if d := cmp.Diff(first, want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	if page.Items[1].Host != "compute-1" || !third.Trunk || third.Rate.Wait != nil || third.Peer != spine {
		t.Errorf("the other rows are %+v, %+v", page.Items[1], third)
	}
}

// A link of which nothing is known says why and has no numbers: it is not idle.
func TestLoadUnknown(t *testing.T) {
	rates := map[ib.Place]perfmgr.Rate{{Switch: 0x0020000000000100, Port: 1}: rated(1, 1)} // what an adapter says does not count
	for state := range perfmgr.Narrow + 1 {
		if state == perfmgr.Rated {
			continue
		}
		rates[ib.Place{Switch: firstLeaf, Port: 1}] = perfmgr.Rate{State: state, Age: time.Second}
		got := load(t, loaded(t, rates), v1.LoadQuery{Node: "leaf1"})
		want := []string{"leaf1/1 sm/1 " + state.String(), "leaf1/2 h1 mlx5_0/1 unread", "leaf1/7 spine1/1 unread"}
		if d := cmp.Diff(got, want); d != "" {
			t.Errorf("(-got +want):\n%s", d)
		}
	}
}

// Where no counters are read, that is said, and no list is shown. Before the fabric is seen, that comes first.
func TestLoadRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		o    *query.Observer
		q    v1.LoadQuery
		code string
	}{
		"no counters": {tree(t, nil), v1.LoadQuery{}, "counters_not_read"},
		"not seen":    {query.New(query.Options{}), v1.LoadQuery{}, "fabric_unseen"},
		"no such":     {loaded(t, nil), v1.LoadQuery{Node: "leaf9"}, "node_unknown"},
		"cursor":      {loaded(t, nil), v1.LoadQuery{PageQuery: v1.PageQuery{After: "x"}}, v1.CodeCursor},
	} {
		_, err := tt.o.Load(t.Context(), tt.q)
		var is *refusal.Error
		if !errors.As(err, &is) || is.Code != tt.code {
			t.Errorf("%s: %v, want %s", name, err, tt.code)
		}
		if name == "no counters" && !strings.Contains(is.Hint, "fabric.counters.every") {
			t.Errorf("%s: %q", name, is.Hint)
		}
	}
}

// What the encoding of a link takes is no capacity, and without a speed there is none.
func TestLoadCapacity(t *testing.T) {
	rates := map[ib.Place]perfmgr.Rate{{Switch: firstLeaf, Port: 1}: rated(gigabyte, 0), {Switch: firstLeaf, Port: 2}: rated(0, 0)}
	slow := strings.ReplaceAll(seentest.Tree, "4xEDR", "4xQDR")
	v := seentest.Run(t, slow, seentest.Grants(), nil).Settled()
	o := query.New(query.Options{Counters: &read{rates: rates}})
	o.OnView(v)
	want := []string{"leaf1/1 sm/1 known 1000000000 0 0.25", "leaf1/2 h1 mlx5_0/1 known 0 0 0", "leaf1/7 spine1/1 unread"}
	if d := cmp.Diff(load(t, o, v1.LoadQuery{Node: "leaf1"}), want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	blank := *v
	b := &topo.Builder{}
	for _, n := range v.Fabric.Nodes() {
		b.AddNode(*n)
	}
	for id, p := range v.Fabric.Ports() {
		without := *p
		without.Speed = 0
		b.SetPort(id, without)
		if p.Peer > id {
			b.Connect(id, p.Peer)
		}
	}
	blank.Fabric = b.Freeze()
	o.OnView(&blank)
	want[0], want[1] = "leaf1/1 sm/1 no-capacity", "leaf1/2 h1 mlx5_0/1 no-capacity" // though it is idle
	if d := cmp.Diff(load(t, o, v1.LoadQuery{Node: "leaf1"}), want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}
