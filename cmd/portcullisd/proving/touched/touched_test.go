package touched_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/cmd/portcullisd/proving/touched"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/mcast"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/proof/reader/readertest"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/multicast"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// bed is a fabric that a Subnet Manager keeps, and that is read beside it.
type bed struct {
	*testing.T
	stage   *testbed.Stage
	station *sim.Station
	random  *rand.Rand
}

func newBed(t *testing.T) *bed {
	t.Helper()
	list, err := netlist.FatTree2(netlist.Shape{Hosts: 11, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{T: t, random: rand.New(rand.NewPCG(3, 4))}
	if b.stage, err = testbed.New(testbed.Options{Netlist: list, Manager: "sm", Fabric: sim.Options{MulticastTop: true}}); err != nil {
		t.Fatal(err)
	}
	b.toggle(b.stage.SwitchPort("h10", 1), sim.Endpoint{Node: "h10", Port: 1}) // it comes later
	b.stage.Start()
	b.stage.Want(sm.Intent{Revision: 1, Grants: []sm.Grant{b.grant("h1", 0x8101), b.grant("h2", 0x8202), b.grant("h3", 0x8101)}})
	b.stage.Step(&sm.GroupsSet{MLIDs: []ib.LID{mlid}, Joins: []multicast.Join{b.member("h1"), b.member("h2")}})
	b.settle()
	if b.station, err = b.stage.Fabric.Station("sm", false); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bed) grant(host string, key ib.PKey) sm.Grant { return b.stage.GrantOf(host, 1, key) }

func (b *bed) settle() {
	b.Helper()
	b.stage.Run(5 * time.Second) // the Subnet Manager learns of what was done to the fabric
	if err := b.stage.Settle(2 * time.Minute); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// read reads the fabric, on top of an earlier reading if there is one.
func (b *bed) read(was *reader.Found, v *touched.Values) *reader.Found {
	b.Helper()
	o := reader.Options{
		Owner: func(ib.Place, reader.Identity) proof.Owner { return proof.Owner{Kind: proof.Infrastructure} },
		Alias: func(_ ib.GUID, holder proof.Owner) proof.Owner { return holder },
		Draw:  b.random.Uint32, Window: 8, Attempts: 2,
	}
	if was != nil {
		o.Earlier = &reader.Earlier{Found: was, Touched: v.Has}
	}
	r, err := reader.New(o)
	b.must(err)
	for !r.Done() {
		for m, ok := r.Next(); ok; m, ok = r.Next() {
			id := m.TID()
			for _, p := range b.station.Exchange([]transport.Packet{{MAD: m, LID: ib.PermissiveLID}}, nil) {
				if !p.Undelivered && p.MAD.IsResponse() {
					r.Answer(&p.MAD)
				}
			}
			r.Expire(id)
		}
	}
	found, err := r.Found()
	b.must(err)
	return found
}

func (b *bed) uplink(leaf string, nth int) ib.PortNum {
	b.Helper()
	for num, p := range b.stage.List.Find(leaf).Ports {
		if p.Peer != "" && b.stage.List.Find(p.Peer).Type == ib.NodeSwitch {
			if nth--; nth < 0 {
				return ib.PortNum(num)
			}
		}
	}
	b.Fatalf("%s has no such uplink", leaf)
	return 0
}

// member is a host that joins a group.
func (b *bed) member(host string) multicast.Join {
	return multicast.Join{MLID: mlid, GUID: b.stage.GUID(host, 1), State: mcast.FullMember}
}

const mlid = ib.MinMulticastLID + 3

// TestSince makes a change that the Subnet Manager sees or makes, and reads what was touched: it finds what a reading of everything does.
func TestSince(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most   int // requests
		change func(b *bed)
	}{
		"nothing":              {18, func(*bed) {}},
		"membership":           {26, func(b *bed) { b.stage.Grant(b.grant("h4", 0x8202)) }},
		"membership withdrawn": {26, func(b *bed) { b.stage.Withdraw(b.grant("h1", 0x8101)) }},
		"host without link": {24, func(b *bed) {
			at := b.stage.SwitchPort("h3", 1)
			b.must(b.stage.Fabric.Unlink(at.Node, at.Port))
		}},
		"host rebooted":      {48, func(b *bed) { b.must(b.stage.Fabric.Reboot("h2")) }},
		"host without power": {26, func(b *bed) { b.must(b.stage.Fabric.PowerOff("h2")) }},
		"hosts swapped": {88, func(b *bed) {
			b.must(b.stage.Fabric.Swap(sim.Endpoint{Node: "h1", Port: 1}, sim.Endpoint{Node: "h7", Port: 1}))
		}},
		"link between switches": {34, func(b *bed) {
			leaf := b.stage.SwitchPort("h3", 1).Node
			b.must(b.stage.Fabric.Unlink(leaf, b.uplink(leaf, 1)))
		}},
		"switch rebooted": {164, func(b *bed) { b.must(b.stage.Fabric.Reboot(b.stage.SwitchPort("h9", 1).Node)) }},
		"spine rebooted": {182, func(b *bed) {
			leaf := b.stage.SwitchPort("h9", 1).Node
			b.must(b.stage.Fabric.Reboot(b.stage.List.Find(leaf).Ports[b.uplink(leaf, 0)].Peer))
		}},
		"new host": {74, func(b *bed) {
			b.toggle(b.stage.SwitchPort("h10", 1), sim.Endpoint{Node: "h10", Port: 1})
		}},
		"new group": {24, func(b *bed) {
			j := b.member("h9")
			j.MLID++
			b.stage.Step(&sm.GroupsChanged{Made: []ib.LID{j.MLID}, Joins: []multicast.Join{j}})
		}},
		"alias": {26, func(b *bed) {
			b.stage.Step(&sm.AliasesSet{Ports: []sm.AliasGUIDs{{GUID: b.stage.GUID("h1", 1), Place: b.stage.Place("h1", 1), Aliases: []ib.GUID{0xA1}}}})
		}},
		"group without members": {20, func(b *bed) { b.stage.Step(&sm.GroupsChanged{Gone: []ib.LID{mlid}}) }},
		"member of a group": {24, func(b *bed) {
			b.stage.Step(&sm.GroupsChanged{Joins: []multicast.Join{b.member("h9")}})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			old, was := b.stage.View(), b.read(nil, nil)
			c.change(b)
			b.settle()
			now := b.stage.View()
			v := touched.Since(old, now)
			found, all := b.read(was, v), b.read(nil, nil)
			for _, line := range readertest.Differences(found, all) {
				t.Error(line)
			}
			if found.Sent > c.most || all.Sent < 520 {
				t.Errorf("%d requests were sent for what was touched, and %d for everything", found.Sent, all.Sent)
			}
			if same := readertest.Facts(was) == readertest.Facts(all); v.IsEmpty() && !same || name != "nothing" && same && name != "host rebooted" && name != "switch rebooted" && name != "spine rebooted" {
				t.Errorf("nothing touched: %t, and the same read: %t", v.IsEmpty(), same)
			}
		})
	}
}

// toggle pulls a cable, or plugs it in again.
func (b *bed) toggle(x, y sim.Endpoint) {
	b.Helper()
	if _, there := b.stage.Fabric.Cable(x.Node, x.Port); there {
		b.must(b.stage.Fabric.Unlink(x.Node, x.Port))
		return
	}
	b.must(b.stage.Fabric.Relink(x.Node, x.Port, y.Node, y.Port))
}

// TestSettingsOfPorts changes what leads to no other table.
func TestSettingsOfPorts(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	old := b.stage.View()
	policy := b.stage.SM.Policy()
	policy.Ports.PacketLifetime, policy.Ports.LeafHOQLife = 12, 9
	b.stage.Step(&sm.PolicySet{Policy: policy})
	b.settle()
	v := touched.Since(old, b.stage.View())
	leaf := b.stage.SwitchPort("h1", 1)
	guid := b.stage.List.Find(leaf.Node).GUID
	for _, x := range []reader.Value{{Node: guid, Attr: mad.AttrSwitchInfo}, {Node: guid, Port: leaf.Port, Attr: mad.AttrPortInfo}} {
		if !v.Has(x) {
			t.Errorf("%+v was changed, and does not count as touched", x)
		}
	}
	for _, x := range []reader.Value{{Node: guid, Attr: mad.AttrLinearForwardingTable}, {Node: guid, Port: leaf.Port, Attr: mad.AttrPKeyTable}} {
		if v.Has(x) {
			t.Errorf("%+v counts as touched, and was not changed", x)
		}
	}
}

// TestReplacedDevice has a switch come back as another device with the same GUID: whatever it holds may differ.
func TestReplacedDevice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	old := b.stage.View()
	b.must(b.stage.Fabric.SetSystemImage("leaf3", 0x5555))
	b.must(b.stage.Fabric.Reboot("leaf3"))
	b.settle()
	v := touched.Since(old, b.stage.View())
	for node, want := range map[string]bool{"leaf3": true, "leaf2": false} {
		if x := (reader.Value{Node: b.stage.List.Find(node).GUID, Attr: mad.AttrLinearForwardingTable}); v.Has(x) != want {
			t.Errorf("the forwarding table of %s counts as touched: %t, want %t", node, v.Has(x), want)
		}
	}
}

// TestManyChanges makes one change after another, and reads what each touched on top of all before.
func TestManyChanges(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			random := rand.New(rand.NewPCG(seed, 9))
			old, was := b.stage.View(), b.read(nil, nil)
			for range 12 {
				host := fmt.Sprintf("h%d", 1+random.IntN(10))
				at := b.stage.SwitchPort(host, 1)
				up := b.uplink(at.Node, random.IntN(2)+1)
				peer := b.stage.List.Find(at.Node).Ports[up]
				switch random.IntN(4) {
				case 0:
					b.stage.Grant(b.grant(host, 0x8000|ib.PKey(random.IntN(4)+1)))
				case 1:
					b.must(b.stage.Fabric.Reboot(host))
				case 2:
					b.toggle(at, sim.Endpoint{Node: host, Port: 1})
				default:
					b.toggle(sim.Endpoint{Node: at.Node, Port: up}, sim.Endpoint{Node: peer.Peer, Port: peer.PeerPort})
				}
				b.settle()
				now := b.stage.View()
				was = b.read(was, touched.Since(old, now))
				old = now
			}
			for _, line := range readertest.Differences(was, b.read(nil, nil)) {
				t.Error(line)
			}
		})
	}
}

// TestOfAnotherManager compares views of two Subnet Managers, which number devices in their own ways: no value is taken over from one to
// the other that is of another device.
func TestOfAnotherManager(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	old, was := b.stage.View(), b.read(nil, nil)
	b.stage.Crash()
	b.must(b.stage.Fabric.PowerOff("h5"))
	b.stage.Start()
	b.stage.Want(sm.Intent{Revision: 7, Grants: []sm.Grant{b.grant("h1", 0x8101), b.grant("h4", 0x8303)}})
	b.settle()
	found, all := b.read(was, touched.Since(old, b.stage.View())), b.read(nil, nil)
	for _, line := range readertest.Differences(found, all) {
		t.Error(line)
	}
}
