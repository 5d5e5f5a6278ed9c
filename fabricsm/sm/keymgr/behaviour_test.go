package keymgr_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/guard"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
	"portcullis/fabricsm/sm/keymgr"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/transport"
)

func (e *env) setDevice(node string, d sim.Device) {
	e.t.Helper()
	if err := e.Fabric.SetDevice(node, d); err != nil {
		e.t.Fatal(err)
	}
}

// class returns the reported status of a class.
func (e *env) class(k keys.Kind) keymgr.ClassStatus {
	for _, c := range e.KeyStatus().Classes {
		if c.Kind == k {
			return c
		}
	}
	return keymgr.ClassStatus{}
}

// attack asks a device for its key under another one.
func (e *env) attack(from string, to ib.LID, class mad.Class, key uint64) []transport.Packet {
	e.t.Helper()
	return e.request(from, mad.MethodGet, to, class, key)
}

// request sends a request about the key of a device from a host, and returns the answers.
func (e *env) request(from string, method mad.Method, to ib.LID, class mad.Class, key uint64) []transport.Packet {
	e.t.Helper()
	k, _ := mad.LookupKeyClass(class)
	p := transport.Packet{LID: to, QP: 1}
	p.MAD.SetHeader(mad.Header{Class: class, ClassVersion: k.Version, Method: method, Attr: k.KeyAttr, TID: 99})
	p.MAD.SetMKey(ib.NewMKey(key))
	return e.exchange(from, p)
}

// open makes a host behind a port of leaf1 a full member of the default partition,
// by its own hand, as none is that our partitions hold.
func (e *env) open(node string, port ib.PortNum) {
	e.t.Helper()
	st, err := e.Fabric.Station(node, false)
	if err != nil {
		e.t.Fatal(err)
	}
	defer st.Close()
	toSwitch, _ := (mad.Route{}).Append(1)
	for _, to := range []struct {
		route mad.Route
		mod   uint32
	}{{mad.Route{}, 0}, {toSwitch, uint32(port) << 16}} {
		q := transport.Packet{LID: ib.PermissiveLID}
		mad.NewSMP(&q.MAD, mad.Header{Method: mad.MethodSet, Attr: mad.AttrPKeyTable, Mod: to.mod, TID: 79}, &to.route, ib.MKey{})
		q.MAD.Data()[0], q.MAD.Data()[1] = 0xff, 0xff
		if got := st.Exchange([]transport.Packet{q}, nil); len(got) != 1 || got[0].MAD.Status() != mad.StatusOK {
			e.t.Fatalf("Set P_KeyTable: %v", got)
		}
	}
}

// TestDevicesWithout: devices without a class, without keys in it, or with one key at a time are distinguished, and delay
// no other device.
func TestDevicesWithout(t *testing.T) {
	e := newEnv(t, single(t, 5, 6), sim.Modern(), 1)
	e.rotating()
	e.setDevice("h1", sim.Device{})
	e.setDevice("h2", sim.Device{CC: guard.Open, VS: guard.Open, N2N: guard.Open})
	e.setDevice("h3", sim.Device{CC: guard.Keyed, VS: guard.Keyed, N2N: guard.Keyed})
	e.start()
	e.settle(10 * time.Second)
	for _, k := range kinds {
		want := keymgr.ClassStatus{Kind: k, Enable: sm.KeyEnabled, Settled: 4, Absent: 2, Single: 1}
		if diff := cmp.Diff(want, e.class(k)); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
	}
	first := e.keysNow()
	e.Run(10*time.Minute + 10*time.Second)
	e.settle(time.Minute)
	same := 0
	for n, k := range e.keysNow() {
		if k == first[n] && !k.IsZero() {
			same++
		}
	}
	if same != len(kinds) {
		t.Errorf("%d keys were not changed, want those of the device that holds one at a time", same)
	}
	for _, r := range eventsOf[*keyevent.KeysRotated](e.told()) {
		wantSingle := 1
		if r.Kind == keys.N2NNodeKey {
			wantSingle = 0
		}
		if r.Single != wantSingle || r.Old != wantSingle || r.Failed != 0 {
			t.Errorf("%v: %d that hold one at a time, %d old ones", r, r.Single, r.Old)
		}
	}
	if len(e.KeyStatus().Ages) != len(kinds) || e.KeyStatus().Ages[0].Why != keys.WhySingle || e.KeyStatus().Ages[0].Age < 10*time.Minute-time.Second {
		t.Errorf("ages: %+v, want three keys of ten minutes", e.KeyStatus().Ages)
	}
}

// TestSilentDevicesHoldNobodyUp: with a tenth of the devices silent, and a small
// window, the others have their keys at once.
func TestSilentDevicesHoldNobodyUp(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 80, Radix: 16})
	e := newEnv(t, must(t, l, err), sim.Modern(), 1)
	for _, c := range []*sm.ClassKeyConfig{&e.SM.ClassKeys.CC, &e.SM.ClassKeys.VS, &e.SM.ClassKeys.N2N} {
		c.Window = 16
	}
	ports, silent := endPorts(l), make(map[string]bool)
	for i, p := range ports {
		if i%10 == 3 && p.node != "sm" && !p.sw {
			silent[p.node] = true
			e.setDevice(p.node, sim.Device{})
		}
	}
	e.start()
	e.Until(time.Minute, func() bool { return e.View() != nil && e.View().Settled })
	e.Run(500 * time.Millisecond)
	for _, p := range ports {
		for _, k := range kinds {
			if have, ok := e.Fabric.ClassKey(p.node, p.num, classes[k]); ok && have.Key.IsZero() {
				t.Errorf("%s has no %v half a second after the fabric was settled", p.node, k)
			}
		}
	}
	if len(silent) < 7 {
		t.Errorf("%d silent devices, want a tenth", len(silent))
	}
	e.settle(10 * time.Second)
}

// TestWrongKeyIsRefused: a device answers no request without its key. The violations that it counts are reported with the
// requester, and cleared.
func TestWrongKeyIsRefused(t *testing.T) {
	for kind, class := range classes {
		t.Run(kind.String(), func(t *testing.T) {
			e := newEnv(t, single(t, 4, 5), sim.Modern(), 1)
			e.start()
			e.settle(time.Minute)
			e.open("h1", 2)
			e.takeEvents()
			victim := e.Fabric.PortInfo("h2", 1).LID
			for range 3 {
				if got := e.attack("h1", victim, class, 0xbad); len(got) != 0 {
					t.Fatal("a request under a wrong key was answered")
				}
			}
			before, _ := e.Fabric.ClassKey("h2", 1, class)
			e.Run(3 * time.Second)
			e.settle(time.Minute)
			after, _ := e.Fabric.ClassKey("h2", 1, class)
			if before.Violations != 3 || after.Violations != 0 || after.Key != before.Key || !after.Protect {
				t.Errorf("the device counted %d, then %d; same key %v, protected %v", before.Violations, after.Violations, after.Key == before.Key, after.Protect)
			}
			got := eventsOf[*sm.ClassKeyViolation](e.told())
			if len(got) != 1 {
				t.Fatalf("%d events %v, want one", len(got), e.told())
			}
			want := &sm.ClassKeyViolation{
				Kind: kind, GUID: e.List.Find("h2").PortGUID(1), Place: ib.Place{Switch: e.List.Find("leaf1").GUID, Port: 3}, Count: 3, Times: 1,
				Told: true, SLID: e.Fabric.PortInfo("h1", 1).LID, QP: 1, Method: mad.MethodGet, Attr: got[0].Attr,
			}
			if diff := cmp.Diff(want, got[0]); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			e.Run(2 * time.Minute)
			e.checkKeys()
		})
	}
}

// TestFalseTraps: a false trap changes nothing, is reported rarely, and costs at most one request a second.
func TestFalseTraps(t *testing.T) {
	e := newEnv(t, single(t, 4, 5), sim.Modern(), 1)
	e.start()
	e.settle(time.Minute)
	e.takeEvents()
	sets, gets := e.sent[mad.MethodSet], e.sent[mad.MethodGet]
	st, err := e.Fabric.Station("h1", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		key  uint64
		told bool
	}{{"no key", 0, true}, {"a wrong key", 0xbad, true}} {
		for i := range 100 {
			p := transport.Packet{LID: e.Fabric.PortInfo("sm", 1).LID, QP: 1}
			p.MAD.SetHeader(mad.Header{Class: mad.ClassVendorVS, ClassVersion: 1, Method: mad.MethodTrap, Attr: mad.AttrNotice, TID: ib.TID(1000 + i)})
			p.MAD.SetMKey(ib.NewMKey(tt.key))
			st.Send(p)
			e.Run(10 * time.Millisecond)
		}
		e.Run(2 * time.Second)
		got := eventsOf[*sm.ClassKeyFalseTrap](e.takeEvents())
		if tt.told && (len(got) == 0 || len(got) > 8) {
			t.Errorf("%s: %d events, want a few", tt.name, len(got))
		}
	}
	if n := e.sent[mad.MethodSet] - sets; n != 0 {
		t.Errorf("%d Sets because of made up traps", n)
	}
	if n := e.sent[mad.MethodGet] - gets; n > 10 {
		t.Errorf("%d Gets because of 200 made up traps in two seconds", n)
	}
}

// TestReboot: a device that was reset holds no key, and gets its own back.
func TestReboot(t *testing.T) {
	fabrics(t, func(t *testing.T, l *netlist.Netlist) {
		for i := range l.Nodes {
			if l.Nodes[i].Name == "sm" {
				continue
			}
			e := newEnv(t, l, sim.Modern(), 1)
			e.SM.AuditPeriod = time.Second
			e.start()
			e.settle(time.Minute)
			before := e.keysNow()
			if err := e.Fabric.Reboot(l.Nodes[i].Name); err != nil {
				t.Fatal(err)
			}
			e.Run(time.Minute)
			e.checkKeys()
			if diff := cmp.Diff(before, e.keysNow()); diff != "" || t.Failed() {
				t.Fatalf("after a reboot of %s:\n%s", l.Nodes[i].Name, diff)
			}
		}
	})
}

// TestLeaseIsKept: a device whose trap gets lost does not lose its protection.
func TestLeaseIsKept(t *testing.T) {
	e := newEnv(t, single(t, 4, 5), sim.Modern(), 1)
	e.start()
	e.settle(time.Minute)
	e.open("h1", 2)
	e.loseTraps = true
	for range 3 {
		e.attack("h1", e.Fabric.PortInfo("h2", 1).LID, mad.ClassVendorVS, 0xbad)
		if k, _ := e.Fabric.ClassKey("h2", 1, mad.ClassVendorVS); k.Violations != 1 {
			t.Fatalf("the device counted %d", k.Violations)
		}
		e.Run(61 * time.Second)
		if k, _ := e.Fabric.ClassKey("h2", 1, mad.ClassVendorVS); !k.Protect {
			t.Fatal("the protection lapsed")
		}
	}
}

// TestForeignKey: a device with a key of another manager keeps it, and is reported.
func TestForeignKey(t *testing.T) {
	e := newEnv(t, single(t, 4, 5), sim.Modern(), 1)
	ours := e.SM.ClassKeys
	e.SM.ClassKeys.VS.Enable = sm.KeyIgnore
	e.start()
	e.settle(time.Minute)
	p := transport.Packet{LID: e.Fabric.PortInfo("h2", 1).LID, QP: 1}
	p.MAD.SetHeader(mad.Header{Class: mad.ClassVendorVS, ClassVersion: 1, Method: mad.MethodSet, Attr: mad.VSAttrKeyInfo, TID: 5})
	if err := mad.Encode(p.MAD[32:], &mad.VSKeyInfo{VSKey: ib.NewMKey(0xbad)}); err != nil {
		t.Fatal(err)
	}
	e.exchange("sm", p)
	e.SM.ClassKeys = ours
	e.start()
	e.settle(time.Minute)
	if k, _ := e.Fabric.ClassKey("h2", 1, mad.ClassVendorVS); k.Key != ib.NewMKey(0xbad) {
		t.Error("the key of somebody else was replaced")
	}
	got := eventsOf[*sm.ClassKeyProblem](e.told())
	if len(got) != 1 || got[0].GUID != e.List.Find("h2").PortGUID(1) || got[0].Kind != keys.VSKey {
		t.Errorf("problems told: %v", got)
	}
	if c := e.class(keys.VSKey); c.Failing != 1 || c.Settled != 4 {
		t.Errorf("status %+v", c)
	}
}

// TestUnverifiedPlaces: where no place is verified, no device is asked anything.
func TestUnverifiedPlaces(t *testing.T) {
	e := newEnv(t, single(t, 4, 5), sim.Modern(), 1)
	e.SM.MKey.Places = keyplace.Declared
	e.start()
	e.settle(time.Minute)
	for _, p := range endPorts(e.List) {
		k, _ := e.Fabric.ClassKey(p.node, p.num, mad.ClassVendorVS)
		if own := p.node == "sm"; k.Key.IsZero() == own {
			t.Errorf("%s has a key: %v", p.node, !k.Key.IsZero())
		}
	}
}

func (e *env) checkNone() {
	e.t.Helper()
	for _, p := range endPorts(e.List) {
		for _, kind := range kinds {
			k, _ := e.Fabric.ClassKey(p.node, p.num, classes[kind])
			if !k.Key.IsZero() || k.Protect || k.LeasePeriod != 0 || !e.saved[name{kind, p.guid}].Retired {
				e.t.Errorf("%s/%d: %v is there: %v, protected %v, lease %d; retired: %v",
					p.node, p.num, kind, !k.Key.IsZero(), k.Protect, k.LeasePeriod, e.saved[name{kind, p.guid}].Retired)
			}
		}
		if r := e.saved[name{keys.N2NNodeKey, p.guid}]; p.sw && !r.Retired {
			e.t.Errorf("%s: the node key is not retired", p.node)
		}
	}
}

// TestDisable: with "disable" all keys, leases and protect bits are taken away,
// and a restart writes nothing.
func TestDisable(t *testing.T) {
	fabrics(t, func(t *testing.T, l *netlist.Netlist) {
		e := newEnv(t, l, sim.Modern(), 1)
		e.start()
		e.settle(time.Minute)
		off := sm.ClassKeyConfig{Enable: sm.KeyDisable}
		e.SM.ClassKeys = sm.ClassKeysConfig{CC: off, VS: off, N2N: off}
		e.start()
		e.settle(time.Minute)
		e.checkNone()
		sets := e.sent[mad.MethodSet]
		e.start()
		e.settle(time.Minute)
		e.Run(30 * time.Minute)
		if n := e.sent[mad.MethodSet] - sets; n != 0 {
			t.Errorf("%d Sets of a fabric without keys", n)
		}
	})
}

// TestRelease: all keys are given back on request, also by a manager that is killed
// at it, and given out again on another.
func TestRelease(t *testing.T) {
	fabrics(t, func(t *testing.T, l *netlist.Netlist) {
		for _, steps := range []int{0, 1, 5, 20, 60} {
			e := newEnv(t, l, sim.Modern(), 1)
			e.rotating()
			e.start()
			e.settle(time.Minute)
			e.takeEvents()
			e.StepKeys(&keymgr.Release{})
			if steps > 0 {
				from := e.steps
				e.Until(time.Second, func() bool { return e.steps >= from+steps })
				e.takeEvents()
				e.start()
			}
			e.Run(time.Second)
			e.settle(time.Minute)
			e.checkNone()
			got := eventsOf[*sm.ClassKeysReleased](e.takeEvents())
			if len(got) != 1 || got[0].Kept != 0 || got[0].Released != len(e.saved) {
				t.Errorf("told %v, want one of %d keys", got, len(e.saved))
			}
			e.StepKeys(&keymgr.Release{})
			if got := eventsOf[*sm.ClassKeysReleased](e.takeEvents()); len(got) != 1 {
				t.Errorf("asked again, it tells %v", got)
			}
			e.StepKeys(&keymgr.Resume{})
			e.Run(time.Second)
			e.settle(time.Minute)
			e.checkKeys()
			if got := e.epochs(); len(got) != 1 || got[2] == 0 {
				t.Errorf("keys by epoch: %v, want all on 2, for none comes back", got)
			}
		}
	})
}

// TestSwitchMembership: as limited members of the default partition, switches do not
// reach each other; as full ones they do, and believe each other. Keys are the same.
func TestSwitchMembership(t *testing.T) {
	for _, full := range []bool{false, true} {
		l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 8})
		e := newEnv(t, must(t, l, err), sim.Modern(), 1)
		e.SM.ClassKeys.FullSwitches = full
		e.start()
		e.settle(time.Minute)
		if err := e.Fabric.NotifyNeighbors("spine1"); err != nil {
			t.Fatal(err)
		}
		is, _ := e.Fabric.ClassKey("leaf1", 0, mad.ClassVendorN2N)
		if (is.Notified > 0) != full || is.NodeViolations != 0 {
			t.Errorf("full members %v: leaf1 believed %d, refused %d", full, is.Notified, is.NodeViolations)
		}
		for _, p := range endPorts(e.List) {
			want := ib.DefaultPKeyLimited
			if p.node == "sm" || p.sw && full {
				want = ib.DefaultPKeyFull
			}
			if got := e.Fabric.PKeyAt(p.node, p.num, 0); got != want {
				t.Errorf("full members %v: %s has %v, want %v", full, p.node, got, want)
			}
		}
		e.checkKeys()
		sets := 0
		lossy := e.OnSend
		e.OnSend = func(r *sm.Request) bool {
			if r.MAD.Method() == mad.MethodSet {
				sets++
			}
			return false
		}
		e.start()
		e.settle(time.Minute)
		if e.OnSend = lossy; sets != 0 {
			t.Errorf("full members %v: %d Sets after a restart on a settled fabric", full, sets)
		}
		// Changed in the configuration, it is changed on the fabric.
		e.SM.ClassKeys.FullSwitches = !full
		e.start()
		e.settle(time.Minute)
		if got := e.Fabric.PKeyAt("leaf1", 0, 0); got.IsFull() == full {
			t.Errorf("after a restart leaf1 has %v", got)
		}
	}
}

// TestReleaseKilled: whenever the manager is killed while it takes keys back, the next
// one ends with none on any device.
func TestReleaseKilled(t *testing.T) {
	for n := 1; ; n++ {
		l, err := netlist.Chain(netlist.Shape{Hosts: 2, Radix: 4})
		e := newEnv(t, must(t, l, err), sim.Modern(), uint64(n))
		e.start()
		e.settle(time.Minute)
		from := e.steps
		e.StepKeys(&keymgr.Release{})
		killed := e.Until(10*time.Second, func() bool { return e.steps >= from+n })
		e.start()
		e.Run(time.Second)
		e.settle(time.Minute)
		e.checkNone()
		if t.Failed() {
			t.Fatalf("killed after step %d", n)
		}
		if !killed {
			if n < 30 {
				t.Errorf("a release of %d steps, want more to crash at", n)
			}
			return
		}
	}
}

// TestNeighboursThatDisagree: a switch that shows another one a wrong node key is reported. It is corrected, along with the
// switch that it showed the key.
func TestNeighboursThatDisagree(t *testing.T) {
	l, err := netlist.Chain(netlist.Shape{Hosts: 4, Radix: 4})
	e := newEnv(t, must(t, l, err), sim.Modern(), 1)
	e.start()
	e.settle(time.Minute)
	manager := e.saved[name{keys.N2NKey, l.Find("sw2").GUID}].Current.Key
	p := transport.Packet{LID: e.Fabric.PortInfo("sw2", 0).LID, QP: 1}
	ask := func(method mad.Method) []byte {
		p.MAD.SetHeader(mad.Header{Class: mad.ClassVendorN2N, ClassVersion: 1, Method: method, Attr: mad.N2NAttrNeighborsInfo, TID: 7})
		p.MAD.SetMKey(manager.M())
		got := e.exchange("sm", p)
		if len(got) != 1 || got[0].MAD.Status() != mad.StatusOK {
			t.Fatalf("%v NeighborsInfo: %v", method, got)
		}
		return got[0].MAD[32:]
	}
	var info mad.N2NNeighborsInfo
	if err := mad.Decode(ask(mad.MethodGet), &info); err != nil {
		t.Fatal(err)
	}
	for i := range info.Neighbor {
		if i > 0 && info.Neighbor[i].LID != 0 {
			info.Neighbor[i].Key = ib.NewMKey(0xbad)
		}
	}
	if err := mad.Encode(p.MAD[32:], &info); err != nil {
		t.Fatal(err)
	}
	ask(mad.MethodSet)
	e.memberships(ib.DefaultPKeyFull)
	if err := e.Fabric.NotifyNeighbors("sw2"); err != nil {
		t.Fatal(err)
	}
	e.memberships(ib.DefaultPKeyLimited)
	e.takeEvents()
	e.Run(3 * time.Second)
	e.settle(time.Minute)
	got := eventsOf[*sm.ClassKeyViolation](e.told())
	if len(got) != 1 || got[0].GUID != l.Find("sw1").GUID || got[0].Node != 1 || got[0].SLID != e.Fabric.PortInfo("sw2", 0).LID {
		t.Errorf("told %+v, want that sw1 refused sw2 once", got)
	}
	e.checkKeys()
}
