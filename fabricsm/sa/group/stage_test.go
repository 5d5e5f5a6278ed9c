package group_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
)

// play is a registry beside a Subnet Manager on a simulated fabric.
type play struct {
	t *testing.T
	*testbed.Stage
	groups *group.Registry
	book   *portindex.Book
}

func newPlay(t *testing.T) *play {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 16, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	s, err := testbed.New(testbed.Options{Netlist: l, Manager: "sm", Fabric: sim.Options{Device: sim.Modern()}, Seed: 3, SM: sm.Config{}})
	if err != nil {
		t.Fatal(err)
	}
	p := &play{t: t, Stage: s, groups: group.New(group.Config{})}
	s.Start()
	s.Want(sm.Intent{Revision: 1})
	for _, h := range []string{"h1", "h2", "h5", "h9"} {
		s.Grant(s.GrantOf(h, 1, tenantA))
	}
	for _, h := range []string{"h3", "h10"} {
		s.Grant(s.GrantOf(h, 1, tenantB))
	}
	p.settle()
	p.look()
	s.Step(p.groups.Input())
	p.do(p.groups.SetFixed([]group.Fixed{group.IPoIB(tenantA, 0), group.IPoIB(tenantB, 0)}))
	return p
}

func (p *play) settle() {
	p.t.Helper()
	if err := p.Settle(2 * time.Minute); err != nil {
		p.t.Fatal(err)
	}
}

// look has the registry follow the newest view.
func (p *play) look() {
	p.t.Helper()
	p.book = portindex.New(p.book, p.View())
	p.do(p.groups.Follow(registry.Of(p.book)))
}

// follow has the registry follow every view from now on, also those of a fabric that is
// not known whole.
func (p *play) follow() {
	busy := false
	p.OnStep = func() {
		if v := p.View(); v != nil && v != p.book.View && !busy {
			busy = true
			p.book = portindex.New(p.book, v)
			if e := p.groups.Follow(registry.Of(p.book)); e.Groups != nil {
				p.Step(e.Groups)
			}
			busy = false
		}
	}
}

func (p *play) do(e group.Effects) {
	p.t.Helper()
	if e.Groups != nil {
		p.Step(e.Groups)
	}
	p.settle()
}

func (p *play) join(host string, mgid ib.GID, state ib.JoinState) mad.Status {
	p.t.Helper()
	guid := p.GUID(host, 1)
	e := p.book.ByGUID(guid)
	rec := mad.MCMemberRecord{MGID: mgid, PortGID: portGID(guid), JoinState: state}
	a := p.groups.Set(portindex.Asker{Port: e.Port, As: guid, LID: e.LID, QP: 1}, &rec, mad.MCMemberJoin)
	p.do(a.Effects)
	return a.Status
}

// comes sends a packet and returns its receivers.
func (p *play) comes(from string, mgid ib.GID) (to []string) {
	p.t.Helper()
	all, err := p.Fabric.Multicast(sim.Endpoint{Node: from, Port: 1}, p.groups.Now().Group(mgid).MLID)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range all {
		to = append(to, e.Node)
	}
	slices.Sort(to)
	return to
}

// TestOnAFabric: packets of a member reach all members and no other port. A port that is unplugged or loses its P_Key gets
// no more packets.
func TestOnAFabric(t *testing.T) {
	p := newPlay(t)
	a, b := group.Broadcast(tenantA, 2), group.Broadcast(tenantB, 2)
	for _, h := range []string{"h1", "h2", "h5"} {
		if s := p.join(h, a, ib.FullMember); s != mad.StatusOK {
			t.Fatalf("%s joins: %v", h, s)
		}
	}
	p.join("h9", a, ib.SendOnlyNonMember)
	p.join("h3", b, ib.FullMember)
	p.join("h10", b, ib.FullMember)
	if s := p.join("h3", a, ib.FullMember); s == mad.StatusOK {
		t.Error("another tenant's host joins")
	}
	want := func(from string, mgid ib.GID, to ...string) {
		t.Helper()
		if got := p.comes(from, mgid); !slices.Equal(got, to) {
			t.Errorf("what %s sends comes to %q, want %q", from, got, to)
		}
	}
	want("h1", a, "h2", "h5")
	want("h9", a, "h1", "h2", "h5")
	want("h3", b, "h10")

	// A switch that restarts ends only the memberships of its own hosts.
	p.follow()
	spine := p.List.Find(p.SwitchPort("h1", 1).Node).Ports[8].Peer
	if err := p.Fabric.Reboot(spine); err != nil {
		t.Fatal(err)
	}
	p.Run(5 * time.Second)
	p.settle()
	want("h1", a, "h2", "h5")
	want("h3", b, "h10")

	p.Withdraw(p.GrantOf("h5", 1, tenantA))
	p.settle()
	want("h1", a, "h2")

	at := p.SwitchPort("h2", 1)
	if err := p.Fabric.Unlink(at.Node, at.Port); err != nil {
		t.Fatal(err)
	}
	p.Run(3 * time.Second)
	p.settle()
	if n := p.groups.Now().Group(a).Len(); n != 2 {
		t.Errorf("%d members when one is unplugged", n)
	}
	if err := p.Fabric.Relink(at.Node, at.Port, "h2", 1); err != nil {
		t.Fatal(err)
	}
	p.Run(3 * time.Second)
	p.settle()
	want("h1", a)
	if s := p.join("h2", a, ib.FullMember); s != mad.StatusOK {
		t.Errorf("joining again: %v", s)
	}
	want("h1", a, "h2")
}
