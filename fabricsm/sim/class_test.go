package sim_test

import (
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/guard"
	"portcullis/fabricsm/transport"
)

// gmp makes a MAD of a class with keys.
func gmp(lid ib.LID, c mad.Class, method mad.Method, attr mad.AttrID, mod uint32, key uint64) transport.Packet {
	k, _ := mad.LookupKeyClass(c)
	p := transport.Packet{LID: lid, QP: 1}
	p.MAD.SetHeader(mad.Header{Class: c, ClassVersion: k.Version, Method: method, Attr: attr, Mod: mod})
	p.MAD.SetMKey(ib.NewMKey(key))
	return p
}

// keySet is a Set of the key of a class.
func keySet(t testing.TB, lid ib.LID, c mad.Class, old uint64, info mad.N2NKeyInfo) transport.Packet {
	t.Helper()
	k, _ := mad.LookupKeyClass(c)
	p := gmp(lid, c, mad.MethodSet, k.KeyAttr, 0, old)
	if err := mad.Encode(k.Attribute(&p.MAD), &info); err != nil {
		t.Fatal(err)
	}
	return p
}

// managed returns a fabric with devices d, a station at sm that manages it, and the LIDs of forward: sm 1, h1 2, leaf1 3.
func managed(t testing.TB, d sim.Device) (*sim.Fabric, *sim.Station) {
	t.Helper()
	f := tree(t, sim.Options{Device: d})
	s := station(t, f, "sm", true)
	forward(t, s)
	activate(t, s)
	s.Take(nil)
	return f, s
}

var keyClasses = []mad.Class{mad.ClassCongestionControl, mad.ClassVendorVS, mad.ClassVendorN2N}

// The table of device rules for MADs without the right key.
func TestClassKeyRules(t *testing.T) {
	plain := map[mad.Class]mad.AttrID{ // an attribute that is not the key
		mad.ClassCongestionControl: mad.CCAttrCongestionInfo, mad.ClassVendorVS: mad.VSAttrConfigSpaceAccess, mad.ClassVendorN2N: mad.N2NAttrNeighborsInfo,
	}
	for _, c := range keyClasses {
		k, _ := mad.LookupKeyClass(c)
		for _, tt := range []struct {
			name    string
			method  mad.Method
			attr    mad.AttrID
			key     uint64
			served  [2]bool // by the protect bit
			counted [2]uint16
		}{
			{"right Get of the key", mad.MethodGet, k.KeyAttr, rightKey, [2]bool{true, true}, [2]uint16{}},
			{"wrong Get of the key", mad.MethodGet, k.KeyAttr, wrongKey, [2]bool{true, false}, [2]uint16{0, 1}},
			{"right Get", mad.MethodGet, plain[c], rightKey, [2]bool{true, true}, [2]uint16{}},
			{"wrong Get", mad.MethodGet, plain[c], wrongKey, [2]bool{}, [2]uint16{1, 1}},
			{"wrong Get of ClassPortInfo", mad.MethodGet, mad.AttrClassPortInfo, wrongKey, [2]bool{true, false}, [2]uint16{0, 1}},
			{"right Set of ClassPortInfo", mad.MethodSet, mad.AttrClassPortInfo, rightKey, [2]bool{true, true}, [2]uint16{}},
			{"wrong Set of ClassPortInfo", mad.MethodSet, mad.AttrClassPortInfo, wrongKey, [2]bool{}, [2]uint16{1, 1}},
			{"wrong TrapRepress", mad.MethodTrapRepress, mad.AttrNotice, wrongKey, [2]bool{}, [2]uint16{1, 1}},
			{"right TrapRepress", mad.MethodTrapRepress, mad.AttrNotice, rightKey, [2]bool{}, [2]uint16{}},
		} {
			for protect := range 2 {
				t.Run(tt.name, func(t *testing.T) {
					f, s := managed(t, sim.Modern())
					if ask(t, s, keySet(t, 3, c, 0, mad.N2NKeyInfo{ManagerKey: ib.NewMKey(rightKey), ProtectBit: protect == 1})) == nil {
						t.Fatal("the key cannot be set")
					}
					in := ask(t, s, gmp(3, c, tt.method, tt.attr, 0, tt.key))
					if (in != nil) != tt.served[protect] {
						t.Errorf("class %v, protect %d: served %v, want %v", c, protect, in != nil, tt.served[protect])
					}
					if in != nil && tt.attr == k.KeyAttr {
						var info mad.N2NKeyInfo
						if err := mad.Decode(k.Attribute(in), &info); err != nil || info.ManagerKey != ib.NewMKey(rightKey) {
							t.Errorf("class %v: the answer does not show the key: %v", c, err)
						}
					}
					if got, _ := f.ClassKey("leaf1", 0, c); got.Violations != tt.counted[protect] {
						t.Errorf("class %v, protect %d: %d violations, want %d", c, protect, got.Violations, tt.counted[protect])
					}
				})
			}
		}
	}
}

func TestClassLease(t *testing.T) {
	for _, c := range keyClasses {
		f, s := managed(t, sim.Modern())
		k, _ := mad.LookupKeyClass(c)
		info := mad.N2NKeyInfo{ManagerKey: ib.NewMKey(rightKey), ProtectBit: true, LeasePeriod: 60}
		ask(t, s, keySet(t, 2, c, 0, info))
		bad := gmp(2, c, mad.MethodGet, k.KeyAttr, 0, wrongKey)
		ask(t, s, bad)
		f.Advance(59 * time.Second)
		if ask(t, s, gmp(2, c, mad.MethodGet, k.KeyAttr, 0, rightKey)) == nil {
			t.Fatalf("class %v: the right key is not served", c)
		}
		f.Advance(time.Hour) // the right key stopped the lease
		if ask(t, s, bad) != nil {
			t.Errorf("class %v: protection lapsed though the manager was there", c)
		}
		f.Advance(time.Minute)
		if ask(t, s, bad) == nil {
			t.Errorf("class %v: protection did not lapse", c)
		}
		if ask(t, s, keySet(t, 2, c, wrongKey, info)) != nil {
			t.Errorf("class %v: the key can be set by those who do not know it", c)
		}
		if got, _ := f.ClassKey("h1", 1, c); got.Violations != 3 || got.Protect {
			t.Errorf("class %v: %+v", c, got)
		}
		info.Violations = 0
		ask(t, s, keySet(t, 2, c, rightKey, info))
		if got, _ := f.ClassKey("h1", 1, c); got.Violations != 0 {
			t.Errorf("class %v: %d violations after a Set to 0", c, got.Violations)
		}
	}
}

func TestClassSupport(t *testing.T) {
	for _, tt := range []struct {
		name    string
		support guard.Support
		answers bool
		keyed   bool
		dual    bool
	}{
		{"absent", guard.Absent, false, false, false},
		{"open", guard.Open, true, false, false},
		{"keyed", guard.Keyed, true, true, false},
		{"dual", guard.DualKeyed, true, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, s := managed(t, sim.Device{CC: tt.support, VS: tt.support, N2N: tt.support})
			for _, c := range keyClasses {
				k, _ := mad.LookupKeyClass(c)
				in := ask(t, s, gmp(2, c, mad.MethodGet, mad.AttrClassPortInfo, 0, 0))
				if (in != nil) != tt.answers {
					t.Fatalf("class %v: answered %v", c, in != nil)
				}
				if in == nil {
					continue
				}
				var info mad.ClassPortInfo
				if err := mad.Decode(k.Attribute(in), &info); err != nil {
					t.Fatal(err)
				}
				if got := info.CapabilityMask&k.KeyCap != 0; got != (tt.keyed && k.KeyCap != 0) || info.ClassVersion != k.Version {
					t.Errorf("class %v: ClassPortInfo %+v", c, info)
				}
				if got := info.CapabilityMask&k.DualCap != 0; got != (tt.dual && k.DualCap != 0) {
					t.Errorf("class %v: dual %v", c, got)
				}
				in = ask(t, s, keySet(t, 2, c, 0, mad.N2NKeyInfo{ManagerKey: ib.NewMKey(1)}))
				if got := in.Status() == mad.StatusOK; got != tt.keyed {
					t.Fatalf("class %v: Set of the key: %v", c, in.Status())
				}
				if !tt.keyed {
					continue
				}
				ask(t, s, keySet(t, 2, c, 1, mad.N2NKeyInfo{ManagerKey: ib.NewMKey(2)}))
				if got := ask(t, s, keySet(t, 2, c, 1, mad.N2NKeyInfo{ManagerKey: ib.NewMKey(2)})) != nil; got != tt.dual {
					t.Errorf("class %v: the old key is good: %v", c, got)
				}
				ask(t, s, keySet(t, 2, c, 2, mad.N2NKeyInfo{ManagerKey: ib.NewMKey(2)})) // confirmed
				if ask(t, s, gmp(2, c, mad.MethodSet, mad.AttrClassPortInfo, 0, 1)) != nil {
					t.Errorf("class %v: the old key is good after the new one was confirmed", c)
				}
			}
		})
	}
}

// Trap 0 of a class goes to the address in ClassPortInfo and reports the offending request. Only a TrapRepress with the key
// of the device ends it.
func TestClassTraps(t *testing.T) {
	for _, c := range keyClasses {
		k, _ := mad.LookupKeyClass(c)
		f, s := managed(t, sim.Modern())
		rogue := station(t, f, "h1", false)
		ask(t, s, keySet(t, 3, c, 0, mad.N2NKeyInfo{ManagerKey: ib.NewMKey(rightKey), ProtectBit: true}))
		rogue.Send(gmp(3, c, mad.MethodSet, k.KeyAttr, 0, wrongKey))
		if in := s.Take(nil); len(in) != 0 {
			t.Fatalf("class %v: %d packets though no trap address is set", c, len(in))
		}
		p := gmp(3, c, mad.MethodSet, mad.AttrClassPortInfo, 0, rightKey)
		if err := mad.Encode(k.Attribute(&p.MAD), &mad.ClassPortInfo{TrapLID: 1, TrapQP: 1, TrapPKey: ib.DefaultPKeyFull}); err != nil {
			t.Fatal(err)
		}
		ask(t, s, p)
		f.Advance(time.Hour)
		for range 20 {
			rogue.Send(gmp(3, c, mad.MethodSet, k.KeyAttr, 5, wrongKey))
		}
		in := s.Take(nil)
		if len(in) != 1 {
			t.Fatalf("class %v: %d packets for 20 violations, want 1 trap", c, len(in))
		}
		trap := in[0]
		if h := trap.MAD.Header(); h.Class != c || h.ClassVersion != k.Version || h.Method != mad.MethodTrap || h.Attr != mad.AttrNotice ||
			trap.MAD.MKey() != ib.NewMKey(rightKey) || trap.LID != 3 || trap.QP != 1 {
			t.Errorf("class %v: trap %+v from LID %v", c, h, trap.LID)
		}
		var slid ib.LID
		var method mad.Method
		var key ib.MKey
		var mod uint32
		if c == mad.ClassCongestionControl {
			var n mad.NoticeKeyCC
			if err := mad.Decode(k.Attribute(&trap.MAD), &n); err != nil || !n.IsGeneric || n.TrapNumber != mad.TrapKeyViolation {
				t.Errorf("notice %+v, %v", n, err)
			}
			slid, method, key, mod = n.SLID, n.Method, n.CCKey, n.AttributeModifier
		} else {
			var n mad.NoticeKeyVS
			if err := mad.Decode(k.Attribute(&trap.MAD), &n); err != nil || n.IsGeneric || n.ProducerType != mad.OUINVIDIA || n.TrapNumberInPayload != 0 {
				t.Errorf("notice %+v, %v", n, err)
			}
			slid, method, key, mod = n.SLID, n.Method, n.Key, n.AttributeModifier
		}
		if slid != 2 || method != mad.MethodSet || key != ib.NewMKey(wrongKey) || mod != 5 {
			t.Errorf("class %v: offender LID %v, %v, modifier %d", c, slid, method, mod)
		}
		trap.MAD.Respond(mad.StatusOK)
		bad := trap
		bad.MAD.SetMKey(ib.MKey{})
		s.Send(bad)
		f.Advance(3 * time.Second)
		in = s.Take(nil)
		if len(in) == 0 {
			t.Fatalf("class %v: a TrapRepress without the key ended the trap", c)
		}
		last := in[len(in)-1]
		last.MAD.Respond(mad.StatusOK)
		last.MAD.SetMKey(ib.NewMKey(rightKey))
		s.Send(last)
		f.Advance(time.Hour)
		if in := s.Take(nil); len(in) != 0 {
			t.Errorf("class %v: %d traps after TrapRepress", c, len(in))
		}
	}
}

// Settings that are written to a device through the classes stay, and only there.
func TestClassSettings(t *testing.T) {
	_, s := managed(t, sim.Modern())
	write := func(lid ib.LID, c mad.Class, attr mad.AttrID, mod uint32, first byte) mad.Status {
		k, _ := mad.LookupKeyClass(c)
		p := gmp(lid, c, mad.MethodSet, attr, mod, 0)
		k.Attribute(&p.MAD)[0] = first
		in := ask(t, s, p)
		if in == nil {
			t.Fatalf("class %v attribute 0x%04x is not answered", c, uint16(attr))
		}
		return in.Status()
	}
	for _, tt := range []struct {
		name string
		lid  ib.LID
		c    mad.Class
		attr mad.AttrID
		mod  uint32
		want mad.Status
	}{
		{"switch setting", 3, mad.ClassCongestionControl, mad.CCAttrSwitchSetting, 0, mad.StatusOK},
		{"switch setting of a host", 2, mad.ClassCongestionControl, mad.CCAttrSwitchSetting, 0, mad.StatusUnsupportedMethodAttr},
		{"host setting", 2, mad.ClassCongestionControl, mad.CCAttrCASetting, 0, mad.StatusOK},
		{"registers", 3, mad.ClassVendorVS, mad.VSAttrConfigSpaceAccess, 7, mad.StatusOK},
		{"neighbours", 3, mad.ClassVendorN2N, mad.N2NAttrNeighborsInfo, 0, mad.StatusOK},
		{"neighbours beyond the last port", 3, mad.ClassVendorN2N, mad.N2NAttrNeighborsInfo, 1, mad.StatusInvalidField},
		{"neighbours of a host", 2, mad.ClassVendorN2N, mad.N2NAttrNeighborsInfo, 0, mad.StatusInvalidField},
		{"read only", 2, mad.ClassCongestionControl, mad.CCAttrCongestionInfo, 0, mad.StatusUnsupportedMethodAttr},
		{"unknown", 2, mad.ClassVendorVS, 0x7777, 0, mad.StatusUnsupportedMethodAttr},
	} {
		if got := write(tt.lid, tt.c, tt.attr, tt.mod, 0x40); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		k, _ := mad.LookupKeyClass(tt.c)
		if in := ask(t, s, gmp(tt.lid, tt.c, mad.MethodGet, tt.attr, tt.mod, 0)); tt.want == mad.StatusOK && k.Attribute(in)[0] != 0x40 {
			t.Errorf("%s: not kept", tt.name)
		}
	}
	for i := range uint32(300) {
		want := mad.StatusOK
		if i >= 255 { // one is there already
			want = mad.StatusInvalidField
		}
		if got := write(3, mad.ClassVendorVS, mad.VSAttrConfigSpaceAccess, 1000+i, 1); got != want {
			t.Fatalf("block %d: %v, want %v", i, got, want)
		}
	}
	old := gmp(3, mad.ClassVendorVS, mad.MethodGet, mad.AttrClassPortInfo, 0, 0)
	old.MAD[2] = 2
	if in := ask(t, s, old); in.Status() != mad.StatusUnsupportedVersion {
		t.Errorf("another class version: %v", in.Status())
	}
}

// Switches notify each other with the key of the receiver.
func TestNodeKeys(t *testing.T) {
	f, s := managed(t, sim.Modern())
	spine := []ib.PortNum{1, 3}
	if status := portSet(t, s, 0, func(pi *mad.PortInfo) { pi.LID, pi.MasterSMLID = 4, 1 }, spine...); status != mad.StatusOK {
		t.Fatal(status)
	}
	for _, at := range [][]ib.PortNum{{1}, spine} {
		si := get[mad.SwitchInfo](t, s, mad.AttrSwitchInfo, 0, at...)
		si.LinearFDBTop = 4
		set(t, s, mad.AttrSwitchInfo, 0, si, at...)
		lft := get[mad.LinearForwardingTable](t, s, mad.AttrLinearForwardingTable, 0, at...)
		if len(at) == 1 {
			lft.Port[4] = 3
		} else {
			lft.Port[1], lft.Port[3], lft.Port[4] = 1, 1, 0
		}
		set(t, s, mad.AttrLinearForwardingTable, 0, lft, at...)
		for _, state := range []ib.PortState{ib.PortArmed, ib.PortActive} {
			for _, end := range []struct {
				num   ib.PortNum
				route []ib.PortNum
			}{{3, []ib.PortNum{1}}, {1, spine}} {
				if f.PortInfo(map[int]string{1: "leaf1", 2: "spine1"}[len(end.route)], end.num).PortState < state {
					portSet(t, s, end.num, func(pi *mad.PortInfo) { pi.PortState = state }, end.route...)
				}
			}
		}
	}
	neighbors := func(lid ib.LID, own, port uint64, at ib.PortNum, far ib.LID) {
		p := gmp(lid, mad.ClassVendorN2N, mad.MethodSet, mad.N2NAttrNeighborsInfo, 0, 0)
		var info mad.N2NNeighborsInfo
		info.Neighbor[0] = mad.N2NNeighbor{NodeType: ib.NodeSwitch, LID: lid, Key: ib.NewMKey(own)}
		info.Neighbor[at] = mad.N2NNeighbor{NodeType: ib.NodeSwitch, LID: far, Key: ib.NewMKey(port)}
		if err := mad.Encode(p.MAD[32:], &info); err != nil {
			t.Fatal(err)
		}
		if in := ask(t, s, p); in == nil || in.Status() != mad.StatusOK {
			t.Fatalf("NeighborsInfo of LID %v is not taken", lid)
		}
	}
	neighbors(3, 30, 40, 3, 4)
	neighbors(4, 40, 30, 1, 3)
	if err := f.NotifyNeighbors("leaf1"); err != nil {
		t.Fatal(err)
	}
	if got, _ := f.ClassKey("spine1", 0, mad.ClassVendorN2N); got.Notified != 1 || got.NodeViolations != 0 {
		t.Errorf("after a good one: %+v", got)
	}
	neighbors(3, 30, 41, 3, 4)
	p := gmp(4, mad.ClassVendorN2N, mad.MethodSet, mad.AttrClassPortInfo, 0, 0)
	if err := mad.Encode(p.MAD[32:], &mad.ClassPortInfo{TrapLID: 1, TrapQP: 1}); err != nil {
		t.Fatal(err)
	}
	ask(t, s, p)
	s.Take(nil)
	if err := f.NotifyNeighbors("leaf1"); err != nil {
		t.Fatal(err)
	}
	got, _ := f.ClassKey("spine1", 0, mad.ClassVendorN2N)
	in := s.Take(nil)
	if got.NodeViolations != 1 || got.Violations != 0 || len(in) != 1 {
		t.Fatalf("after a wrong one: %+v, %d traps", got, len(in))
	}
	var n mad.NoticeKeyVS
	if err := mad.Decode(in[0].MAD[32:], &n); err != nil || n.TrapNumberInPayload != uint16(mad.TrapKeyMisconfiguration) || n.SLID != 3 {
		t.Errorf("%+v, %v", n, err)
	}
	if err := f.NotifyNeighbors("h1"); err == nil {
		t.Error("a host has neighbours to tell")
	}
}

func TestVendorSMPs(t *testing.T) {
	for _, tt := range []struct {
		name     string
		device   sim.Device
		answered bool
		cc, dual bool
	}{
		{"plain", sim.Device{}, false, false, false},
		{"modern", sim.Modern(), true, true, true},
		{"no congestion control", sim.Device{VS: guard.Keyed}, true, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tree(t, sim.Options{Device: tt.device})
			s := station(t, f, "sm", false)
			for _, route := range [][]ib.PortNum{{1}, {1, 2}} {
				in := ask(t, s, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrGeneralInfo, Mod: mad.GeneralInfoCapabilitiesMod}, route...))
				var g mad.GeneralInfoCapabilities
				if err := mad.Decode(in.Data(), &g); err != nil {
					t.Fatal(err)
				}
				if got := in.Status() == mad.StatusOK; got != tt.answered || got && g.Has(mad.CapCongestionControl) != tt.cc {
					t.Errorf("GeneralInfo: %v, %+v", in.Status(), g)
				}
				in = ask(t, s, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrMlnxExtendedPortInfo, Mod: 1}, route...))
				var e mad.MlnxExtendedPortInfo
				if err := mad.Decode(in.Data(), &e); err != nil {
					t.Fatal(err)
				}
				if got := in.Status() == mad.StatusOK; got != tt.answered || got && e.CapabilityMask&mad.MlnxDualMKey != 0 != tt.dual {
					t.Errorf("MlnxExtendedPortInfo: %v, %+v", in.Status(), e)
				}
			}
		})
	}
}

// TestSettingUnderAnotherPKey: a program may use another P_Key than the first of its table. The P_Key decides which ports
// it reaches, and the settings that it writes there are visible.
func TestSettingUnderAnotherPKey(t *testing.T) {
	const tenant ib.PKey = 0x8001
	f, s := managed(t, sim.Device{CC: guard.Keyed})
	host := station(t, f, "h1", false)
	set := gmp(1, mad.ClassCongestionControl, mad.MethodSet, mad.CCAttrCASetting, 0, 0)
	set.MAD[64] = 0xEE
	setting := func() []byte { return f.ClassSetting("sm", 1, mad.ClassCongestionControl, mad.CCAttrCASetting, 0) }
	host.UsePKey(tenant)
	if got := host.Exchange([]transport.Packet{set}, nil); len(got) != 1 || !got[0].Undelivered || setting() != nil {
		t.Fatalf("with a P_Key that the receiver does not have: %v, set %v", got, setting() != nil)
	}
	s.Take(nil) // the trap
	pkeys(t, s, 0, []ib.PKey{ib.DefaultPKeyFull, tenant})
	pkeys(t, s, 0, []ib.PKey{ib.DefaultPKeyFull, tenant}, 1, 2)
	if got := host.Exchange([]transport.Packet{set}, nil); len(got) != 1 || got[0].Undelivered || got[0].MAD.Status() != mad.StatusOK {
		t.Fatalf("with a P_Key that both have: %v", got)
	}
	if kept := setting(); len(kept) == 0 || kept[0] != 0xEE {
		t.Errorf("the setting is %x", kept)
	}
}
