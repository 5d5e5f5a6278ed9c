package sim_test

import (
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport"
)

const (
	rightKey = 0xA5A5
	wrongKey = 0x5A5A
)

// keyed puts an M_Key into a packet.
func keyed(p transport.Packet, key uint64) transport.Packet {
	p.MAD.SetMKey(ib.NewMKey(key))
	return p
}

// protect sets the key of an end port; the station at sm knows it.
func protect(t testing.TB, s *sim.Station, level uint8, lease uint16, route ...ib.PortNum) {
	t.Helper()
	num := uint32(0)
	if status := portSet(t, s, ib.PortNum(num), func(pi *mad.PortInfo) {
		pi.MKey, pi.MKeyProtectBits, pi.MKeyLeasePeriod = ib.NewMKey(rightKey), level, lease
	}, route...); status != mad.StatusOK {
		t.Fatal(status)
	}
}

// ask sends one SMP and returns its answer, or nil if there is none.
func ask(t testing.TB, s *sim.Station, p transport.Packet) *mad.MAD {
	t.Helper()
	for _, in := range s.Exchange([]transport.Packet{p}, nil) {
		if !in.Undelivered && in.MAD.Method() == mad.MethodGetResp {
			return &in.MAD
		}
	}
	return nil
}

// The table of IBTA volume 1, 14.2.4, for a host, a far host and a switch.
func TestMKeyLevels(t *testing.T) {
	const (
		silent = iota
		hidden
		shown
		served // an attribute without a key in it
	)
	portInfo := mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo}
	nodeInfo := mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}
	guidSet := mad.Header{Method: mad.MethodSet, Attr: mad.AttrGUIDInfo}
	repress := mad.Header{Method: mad.MethodTrapRepress, Attr: mad.AttrNotice}
	smInfo := mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo}
	for _, tt := range []struct {
		name      string
		key       uint64
		request   mad.Header
		want      [4]int    // by level
		violation [4]uint16 // counted, by level
	}{
		{"PortInfo, right", rightKey, portInfo, [4]int{shown, shown, shown, shown}, [4]uint16{}},
		{"PortInfo, wrong", wrongKey, portInfo, [4]int{shown, hidden, silent, silent}, [4]uint16{0, 0, 1, 1}},
		{"PortInfo, none", 0, portInfo, [4]int{shown, hidden, silent, silent}, [4]uint16{0, 0, 1, 1}},
		{"NodeInfo, right", rightKey, nodeInfo, [4]int{served, served, served, served}, [4]uint16{}},
		{"NodeInfo, wrong", wrongKey, nodeInfo, [4]int{served, served, silent, silent}, [4]uint16{0, 0, 1, 1}},
		{"Set, right", rightKey, guidSet, [4]int{served, served, served, served}, [4]uint16{}},
		{"Set, wrong", wrongKey, guidSet, [4]int{}, [4]uint16{1, 1, 1, 1}},
		{"Set, none", 0, guidSet, [4]int{}, [4]uint16{1, 1, 1, 1}},
		{"TrapRepress, right", rightKey, repress, [4]int{}, [4]uint16{}},
		{"TrapRepress, wrong", wrongKey, repress, [4]int{}, [4]uint16{1, 1, 1, 1}},
		{"SMInfo for a program, wrong", wrongKey, smInfo, [4]int{}, [4]uint16{}}, // adapters leave it to the host
	} {
		for _, at := range []struct {
			name  string
			route []ib.PortNum
			node  string
			port  ib.PortNum
		}{{"host", []ib.PortNum{1, 2}, "h1", 1}, {"far host", []ib.PortNum{1, 3, 3, 1}, "h2", 1}, {"switch", []ib.PortNum{1}, "leaf1", 0}} {
			for level := range uint8(4) {
				t.Run(tt.name+" at a "+at.name, func(t *testing.T) {
					f := tree(t, sim.Options{})
					s := station(t, f, "sm", false)
					protect(t, s, level, 0, at.route...)
					got := silent
					if in := ask(t, s, keyed(directed(tt.request, at.route...), tt.key)); in != nil {
						var pi mad.PortInfo
						switch err := mad.Decode(in.Data(), &pi); {
						case err != nil:
							t.Fatal(err)
						case in.Attr() != mad.AttrPortInfo:
							got = served
						case pi.MKey.IsZero():
							got = hidden
						case pi.MKey == ib.NewMKey(rightKey):
							got = shown
						}
						if in.MKey() != ib.NewMKey(tt.key) {
							t.Error("the answer does not have the key of the request")
						}
					}
					if got != tt.want[level] {
						t.Errorf("level %d: answer %d, want %d", level, got, tt.want[level])
					}
					want := tt.violation[level]
					if at.name == "switch" && tt.request == smInfo && level >= 2 {
						want = 1 // its agent is all that is there
					}
					if got := f.PortInfo(at.node, at.port).MKeyViolations; got != want {
						t.Errorf("level %d: %d violations, want %d", level, got, want)
					}
				})
			}
		}
	}
}

// SMPs of a host to its own port use no link, and no device checks them.
func TestLocalSMPsAreNotChecked(t *testing.T) {
	f := tree(t, sim.Options{})
	sm, host := station(t, f, "sm", false), station(t, f, "h1", false)
	protect(t, sm, 2, 0, 1, 2)
	if pi := get[mad.PortInfo](t, host, mad.AttrPortInfo, 0); pi.MKey != ib.NewMKey(rightKey) {
		t.Errorf("the host reads key %v of its own port", pi.MKey)
	}
	if in := ask(t, host, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo}, 1, 2)); in != nil {
		t.Error("over the leaf and back it is answered without a key")
	}
}

// The key of a switch is that of port 0; its other ports show none.
func TestSwitchPortsShowNoMKey(t *testing.T) {
	f := tree(t, sim.Options{})
	s := station(t, f, "sm", false)
	protect(t, s, 1, 0, 1)
	for port, want := range []uint64{rightKey, 0, 0} {
		in := ask(t, s, keyed(directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo, Mod: uint32(port)}, 1), rightKey))
		var pi mad.PortInfo
		if err := mad.Decode(in.Data(), &pi); err != nil {
			t.Fatal(err)
		}
		if pi.MKey != ib.NewMKey(want) {
			t.Errorf("port %d shows %v", port, pi.MKey)
		}
	}
}

// Each port of an adapter has a key of its own: a PortInfo that goes to one and
// speaks of another is checked by both.
func TestMKeysOfTwoPorts(t *testing.T) {
	l, err := netlist.DualPort(netlist.Shape{Hosts: 2, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name          string
		first, second uint64 // keys of the ports
		level         uint8
		offered       uint64
		port          uint32 // in the modifier
		answers       bool
		shown         uint64
		counted       [2]uint16
	}{
		{"own port", 1, 2, 2, 1, 1, true, 1, [2]uint16{}},
		{"own port by 0", 1, 2, 2, 1, 0, true, 1, [2]uint16{}},
		{"another, with the key of the first", 1, 2, 2, 1, 2, false, 0, [2]uint16{0, 1}},
		{"another, with its key", 1, 2, 2, 2, 2, false, 0, [2]uint16{1, 0}},
		{"another, of the same key", 1, 1, 2, 1, 2, true, 1, [2]uint16{}},
		{"another, the first has none", 0, 2, 2, 0, 2, false, 0, [2]uint16{0, 1}},
		{"another, hidden", 1, 2, 1, 1, 2, true, 0, [2]uint16{}},
		{"another that has none", 1, 0, 2, 1, 2, true, 0, [2]uint16{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := sim.New(l)
			s := station(t, f, "sm", false)
			at := []ib.PortNum{1, 3} // port 1 of h1
			for port, key := range []uint64{tt.first, tt.second} {
				route := at
				if port == 1 {
					route = []ib.PortNum{1, 1, 3}
				}
				if status := portSet(t, s, 0, func(pi *mad.PortInfo) {
					pi.MKey, pi.MKeyProtectBits = ib.NewMKey(key), tt.level
				}, route...); status != mad.StatusOK {
					t.Fatal(status)
				}
			}
			in := ask(t, s, keyed(directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo, Mod: tt.port}, at...), tt.offered))
			if (in != nil) != tt.answers {
				t.Fatalf("answered %v", in != nil)
			}
			if in != nil {
				var pi mad.PortInfo
				if err := mad.Decode(in.Data(), &pi); err != nil || pi.MKey != ib.NewMKey(tt.shown) {
					t.Errorf("the answer shows key %#x, want %#x", pi.MKey.Reveal(), tt.shown)
				}
			}
			if got := [2]uint16{f.PortInfo("h1", 1).MKeyViolations, f.PortInfo("h1", 2).MKeyViolations}; got != tt.counted {
				t.Errorf("violations %v, want %v", got, tt.counted)
			}
		})
	}
}

// A device that holds two keys takes the old one until the new one is set
// again; others drop it at once.
func TestDualMKeys(t *testing.T) {
	for _, tt := range []struct {
		name string
		dual bool
		sets []uint64 // after rightKey
		open []uint64
		shut []uint64
	}{
		{"single", false, []uint64{2}, []uint64{2}, []uint64{rightKey, 0}},
		{"dual", true, []uint64{2}, []uint64{2, rightKey}, []uint64{0, wrongKey}},
		{"dual, confirmed", true, []uint64{2, 2}, []uint64{2}, []uint64{rightKey}},
		{"dual, the one before the last is gone", true, []uint64{2, 3}, []uint64{3, 2}, []uint64{rightKey}},
		{"dual, cleared", true, []uint64{2, 0}, []uint64{0, 2, rightKey, wrongKey}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tree(t, sim.Options{Device: sim.Device{DualMKey: tt.dual}})
			s := station(t, f, "sm", false)
			protect(t, s, 2, 0, 1, 2)
			now := uint64(rightKey)
			for _, key := range tt.sets {
				pi := f.PortInfo("h1", 1)
				pi.PortState, pi.PortPhysicalState, pi.MKey = ib.PortNop, ib.PhysNop, ib.NewMKey(key)
				p := keyed(directed(mad.Header{Method: mad.MethodSet, Attr: mad.AttrPortInfo}, 1, 2), now)
				if err := mad.Encode(p.MAD.Data(), &pi); err != nil {
					t.Fatal(err)
				}
				if in := ask(t, s, p); in == nil || in.Status() != mad.StatusOK {
					t.Fatalf("Set of key %#x is not answered well", key)
				}
				now = key
			}
			request := directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo}, 1, 2)
			for _, key := range tt.open {
				in := ask(t, s, keyed(request, key))
				if in == nil {
					t.Errorf("key %#x does not open the port", key)
					continue
				}
				var pi mad.PortInfo
				if err := mad.Decode(in.Data(), &pi); err != nil || pi.MKey != ib.NewMKey(now) {
					t.Errorf("key %#x: %v, the answer does not show the newest key", key, err)
				}
			}
			for _, key := range tt.shut {
				if in := ask(t, s, keyed(request, key)); in != nil {
					t.Errorf("key %#x opens the port", key)
				}
			}
		})
	}
}

func TestWhatSurvivesAReboot(t *testing.T) {
	for _, tt := range []struct {
		name        string
		device      sim.Device
		mkey, pkeys bool
	}{
		{"nothing", sim.Device{}, false, false},
		{"the M_Key", sim.Device{KeepsMKey: true}, true, false},
		{"the P_Keys", sim.Device{KeepsPKeys: true}, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := tree(t, sim.Options{Device: tt.device})
			s := station(t, f, "sm", false)
			var table mad.PKeyTable
			table.PKey[0], table.PKey[3] = ib.DefaultPKeyLimited, 0x8005
			if status, _ := set(t, s, mad.AttrPKeyTable, 0, table, 1, 2); status != mad.StatusOK {
				t.Fatal(status)
			}
			protect(t, s, 2, 30, 1, 2)
			if err := f.Reboot("h1"); err != nil {
				t.Fatal(err)
			}
			pi := f.PortInfo("h1", 1)
			if got := pi.MKey == ib.NewMKey(rightKey) && pi.MKeyProtectBits == 2 && pi.MKeyLeasePeriod == 30; got != tt.mkey || pi.CapabilityMask.Has(mad.IsMKeyNVRAM) != tt.mkey {
				t.Errorf("M_Key %v, level %d, lease %d", pi.MKey, pi.MKeyProtectBits, pi.MKeyLeasePeriod)
			}
			if in := ask(t, s, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 1, 2)); (in == nil) != tt.mkey {
				t.Errorf("answered without a key: %v", in != nil)
			}
			if got := slices.Equal(f.PKeys("h1", 1), []ib.PKey{ib.DefaultPKeyLimited, 0x8005}); got != tt.pkeys || pi.CapabilityMask.Has(mad.IsPKeyNVRAM) != tt.pkeys {
				t.Errorf("P_Keys %v", f.PKeys("h1", 1))
			}
			if pi.LID != 0 || pi.MasterSMLID != 0 {
				t.Errorf("LID %v is still there", pi.LID)
			}
		})
	}
}
