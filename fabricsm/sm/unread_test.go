package sm_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// TestColdFabricIsWrittenUnread: of each cable one end is read, and the other is
// known by the answer to its first Set.
func TestColdFabricIsWrittenUnread(t *testing.T) {
	made, err := netlist.FatTree3(netlist.Shape{Hosts: 54, Radix: 6})
	l := list(t, made, err)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.mustSettle(time.Second)
	ends, switches, free := len(cabled(l)), 0, 0
	for i := range l.Nodes {
		if n := &l.Nodes[i]; n.Type == ib.NodeSwitch {
			switches++
			for _, p := range n.Ports[1:] {
				if p.Peer == "" {
					free++
				}
			}
		}
	}
	want := map[string]int{
		"Get NodeInfo":              ends/2 + 1,
		"Get PortInfo":              ends/2 + 1 + free + 2*switches, // both ends of our own cable, and port 0, at the end once more
		"Set PortInfo":              2*ends + switches,              // Armed, Active
		"Get SwitchInfo":            switches,
		"Set SwitchInfo":            switches,
		"Set P_KeyTable":            2*54 + switches, // one block each
		"Set LinearForwardingTable": e.smps["Set LinearForwardingTable"],
	}
	if d := cmp.Diff(want, e.smps); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
	if bad := inactive(e.view); len(bad) > 0 {
		t.Errorf("not Active: %.5q", bad)
	}
	if p := e.view.Progress; p.Background == 0 || len(e.problems()) > 0 {
		t.Errorf("%d pieces of work are in the background, want some; problems %q", p.Background, e.problems())
	}
}

// TestUnreadPortRefuses: a port that refuses the guessed values is read, and comes up all the same.
func TestUnreadPortRefuses(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	refused := 0
	e.meddle = func(set bool, m *mad.MAD) {
		if set && m.Attr() == mad.AttrPortInfo && m.Mod() == 0 && refused < 20 { // adapters and port 0
			refused++
			m.SetStatus(mad.StatusInvalidField)
		}
	}
	e.start()
	e.mustSettle(time.Minute)
	if bad := inactive(e.view); len(bad) > 0 || refused == 0 {
		t.Errorf("after %d refusals not Active: %.5q", refused, bad)
	}
}

// TestConfiguredFabricIsReadWhole: where some subnet manager was at work before, every port is asked for another master
// before anything is written.
func TestConfiguredFabricIsReadWhole(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.mustSettle(time.Second)
	h := hosts(l)[3]
	if err := e.fab.Reboot(h.node.Name); err != nil {
		t.Fatal(err)
	}
	read := 0
	e.logSend = func(r *sm.Request) {
		switch {
		case r.MAD.Method() == mad.MethodSet:
			e.logSend = nil
		case r.MAD.Attr() == mad.AttrPortInfo && r.MAD.Mod() != 0:
			read++
		}
	}
	e.start()
	e.mustSettle(time.Minute)
	if ends := len(cabled(l)); read < ends {
		t.Errorf("%d ports were read before the first Set, want the %d that are cabled", read, ends)
	}
}

// TestNamesComeInTheBackground, and do not unsettle the fabric.
func TestNamesComeInTheBackground(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	e.start()
	e.mustSettle(time.Second)
	e.takeEvents()
	e.run(time.Second)
	if events := e.takeEvents(); len(events) > 0 {
		t.Errorf("events %v", events)
	}
	if p := e.view.Progress; p.Background != 0 {
		t.Errorf("%d pieces of work are left", p.Background)
	}
	for _, n := range e.view.Fabric.Nodes() {
		if n.Description == "" {
			t.Errorf("node %v has no name", n.GUID)
		}
	}
	if n := e.smps["Get NodeDescription"]; n != len(l.Nodes) {
		t.Errorf("%d names were read, want %d", n, len(l.Nodes))
	}
}

// TestStaleKeyInTheBackground: a tenant's key in a block that was not read is found soon, and removed. Meanwhile the switch
// port lets no host use it.
func TestStaleKeyInTheBackground(t *testing.T) {
	l := tree(t, 8, 8)
	e := newEnv(t, l, sim.Options{}, sm.Config{AuditPeriod: -1}, 1)
	var route mad.Route
	e.logSend = func(r *sm.Request) {
		if m := &r.MAD; m.Attr() == mad.AttrPKeyTable && m.Method() == mad.MethodSet && route.Len() == 0 && m.Route().Len() == 2 && m.Mod() == 0 {
			route = m.Route()
		}
	}
	e.start()
	e.mustSettle(time.Second)
	e.logSend = nil
	if route.Len() == 0 {
		t.Fatalf("no host's table was written")
	}
	var packet mad.MAD
	mad.NewSMP(&packet, mad.Header{Method: mad.MethodSet, Attr: mad.AttrPKeyTable, Mod: 1, TID: 77}, &route, ib.MKey{})
	if err := mad.Encode(packet.Data(), &mad.PKeyTable{PKey: [32]ib.PKey{0x8123}}); err != nil {
		t.Fatal(err)
	}
	e.st.Exchange([]transport.Packet{{MAD: packet, LID: ib.PermissiveLID}}, nil)
	held := func() (n int) {
		for _, h := range hosts(l) {
			for _, k := range e.fab.PKeys(h.node.Name, 1) {
				if k == 0x8123 {
					n++
				}
			}
		}
		return n
	}
	if held() != 1 {
		t.Fatalf("%d hosts hold the stale key, want 1", held())
	}
	e.run(time.Second)
	e.mustSettle(time.Second)
	if held() != 0 {
		t.Errorf("the stale key is still held")
	}
}
