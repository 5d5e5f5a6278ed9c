package keymgr_test

import (
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keymgr"
	"portcullis/fabricsm/topo"
)

// cable moves the cables of two hosts, each to a port of leaf1.
func (e *env) cable(to map[string]ib.PortNum) {
	e.t.Helper()
	for node := range to {
		if err := e.Fabric.Unlink(node, 1); err != nil {
			e.t.Fatal(err)
		}
	}
	e.Run(2 * time.Second)
	for node, port := range to {
		if err := e.Fabric.Relink(node, 1, "leaf1", port); err != nil {
			e.t.Fatal(err)
		}
	}
}

// TestKeysStayAtTheirPlace: a device that is seen elsewhere than where it was given
// its keys is shown none, nor a new one; back at its place it is as before.
func TestKeysStayAtTheirPlace(t *testing.T) {
	e := newEnv(t, single(t, 4, 5), sim.Modern(), 1)
	e.start()
	e.settle(time.Minute)
	before := e.keysNow()
	e.cable(map[string]ib.PortNum{"h1": 3, "h2": 2})
	e.takeEvents()
	sent := e.sent[mad.MethodSet]
	e.Run(5 * time.Minute)
	if n := e.sent[mad.MethodSet] - sent; n != 0 {
		t.Errorf("%d Sets while two hosts have each other's place", n)
	}
	for _, node := range []string{"h1", "h2"} {
		told := 0
		for _, p := range eventsOf[*sm.ClassKeyProblem](e.told()) {
			if p.GUID == e.List.Find(node).PortGUID(1) {
				told++
			}
		}
		if told != len(kinds) {
			t.Errorf("%d problems of %s were told, want one a class", told, node)
		}
		for _, kind := range kinds {
			if k, _ := e.Fabric.ClassKey(node, 1, classes[kind]); k.Violations != 0 {
				t.Errorf("%s was asked %d times under a wrong %v", node, k.Violations, kind)
			}
		}
	}
	e.cable(map[string]ib.PortNum{"h1": 2, "h2": 3})
	e.Run(time.Minute)
	e.settle(time.Minute)
	e.checkKeys()
	for n, k := range e.keysNow() {
		if k != before[n] {
			t.Errorf("%v of %v is another one than before", n.kind, n.guid)
		}
	}
}

// TestKeysFollowTheMKey: where M_Keys are given out, a device whose M_Key was moved
// to another place has its other keys there, too.
func TestKeysFollowTheMKey(t *testing.T) {
	e := newEnv(t, single(t, 4, 5), sim.Modern(), 1)
	e.SM.MKey.Source = e.SM.ClassKeys.Source
	e.start()
	e.settle(time.Minute)
	before := e.keysNow()
	guid, place := e.List.Find("h1").PortGUID(1), ib.Place{Switch: e.List.Find("leaf1").GUID, Port: 5}
	e.cable(map[string]ib.PortNum{"h1": 5})
	facts := slices.Clone(e.Facts())
	for i := range facts {
		if k := facts[i].Key; k != nil && k.Kind == keys.MKey && k.GUID == guid {
			moved := *k
			moved.Place = place
			facts[i].Key = &moved
		}
	}
	e.Restore(facts)
	e.start()
	e.Run(10 * time.Second)
	e.settle(time.Minute)
	e.checkKeys()
	for _, kind := range kinds {
		n := name{kind, guid}
		if e.saved[n].Place != place || e.keysNow()[n] != before[n] {
			t.Errorf("%v: it is bound to %v, and the same as before: %v", kind, e.saved[n].Place, e.keysNow()[n] == before[n])
		}
	}
}

// TestStandby: while another manager is master nothing is sent, not even to devices that send traps. Afterwards all devices
// are asked, and nothing is written.
func TestStandby(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 4})
	e := newEnv(t, must(t, l, err), sim.Modern(), 1)
	e.start()
	e.settle(time.Minute)
	gets, sets := e.sent[mad.MethodGet], e.sent[mad.MethodSet]
	e.standby = true
	e.StepKeys(&keymgr.Seen{View: e.View()})
	e.Run(10 * time.Minute)
	if n := e.sent[mad.MethodGet] + e.sent[mad.MethodSet] - gets - sets; n != 0 {
		t.Errorf("%d requests by a standby", n)
	}
	e.standby = false
	e.StepKeys(&keymgr.Seen{View: e.View()})
	e.Run(time.Second)
	e.checkKeys()
	if e.sent[mad.MethodGet] == gets || e.sent[mad.MethodSet] != sets {
		t.Errorf("master again: %d Gets, %d Sets", e.sent[mad.MethodGet]-gets, e.sent[mad.MethodSet]-sets)
	}
}

// TestKeysOfSwitchesAreNotForHosts: a host that shows the GUID of a switch, which is
// off, is not shown its keys.
func TestKeysOfSwitchesAreNotForHosts(t *testing.T) {
	for _, mkeys := range []bool{false, true} {
		l, err := netlist.Chain(netlist.Shape{Hosts: 4, Radix: 4})
		e := newEnv(t, must(t, l, err), sim.Modern(), 1)
		if mkeys {
			e.SM.MKey.Source = e.SM.ClassKeys.Source
		}
		e.start()
		e.settle(time.Minute)
		before := e.keysNow()
		const host, off = "h2", "sw2" // the host is at the other switch, with the manager
		if err := e.Fabric.PowerOff(off); err != nil {
			t.Fatal(err)
		}
		info := mad.NodeInfo{
			BaseVersion: 1, ClassVersion: 1, NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: l.Find(host).GUID, PortGUID: l.Find(off).GUID,
			PartitionCap: 64, LocalPortNum: 1,
		}
		if err := e.Fabric.Reboot(host); err != nil {
			t.Fatal(err)
		}
		if err := e.Fabric.Lie(host, 1, info); err != nil {
			t.Fatal(err)
		}
		e.start()
		e.Run(10 * time.Minute)
		if e.View().Fabric.PortByGUID(l.Find(off).GUID) == topo.None {
			t.Fatal("the host is not seen")
		}
		if e.unsafe != "" {
			t.Errorf("with M_Keys %v: %s", mkeys, e.unsafe)
		}
		for _, kind := range kinds {
			if k, _ := e.Fabric.ClassKey(host, 1, classes[kind]); k.Key == before[name{kind, l.Find(off).GUID}] {
				t.Errorf("with M_Keys %v: the host has the %v of the switch", mkeys, kind)
			}
		}
	}
}
