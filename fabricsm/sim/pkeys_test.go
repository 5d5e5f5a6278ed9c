package sim

import (
	"encoding/binary"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
	"portcullis/fabricsm/sim/netlist"
)

// pair is a fabric of two hosts, sm and h1, on one switch, at ports 1 and 2.
func pair(t testing.TB, o Options) *Fabric {
	t.Helper()
	l, err := netlist.Single(netlist.Shape{Hosts: 2, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	return NewWith(l, o)
}

// port returns a port for white-box tests.
func (f *Fabric) port(t testing.TB, node string, num ib.PortNum) *port {
	t.Helper()
	p, err := f.findPort(node, num)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// withKeys fills the P_Key table of a port.
func (p *port) withKeys(keys ...ib.PKey) {
	clear(p.pkeys)
	for i, k := range keys {
		binary.BigEndian.PutUint16(p.pkeys[2*i:], uint16(k))
	}
}

func TestPartitionRules(t *testing.T) {
	const (
		limited ib.PKey = 0x0001
		full    ib.PKey = 0x8001
	)
	for _, tt := range []struct {
		name           string
		entry, packet  ib.PKey
		swIn, swOut    verdict // of an external port that enforces
		baseOnly       verdict // the same, inbound, of a switch that sees the base alone
		hostIn, hostUp verdict
	}{
		{"full to full", full, full, admitted, admitted, admitted, admitted, admitted},
		{"limited at a full entry", full, limited, admitted, admitted, admitted, admitted, refusedPKey},
		{"full at a limited entry", limited, full, refusedPKey, admitted, admitted, admitted, refusedPKey},
		{"limited to limited", limited, limited, admitted, refusedPKey, admitted, refusedPKey, admitted},
		{"another partition", full, 0x8002, refusedPKey, refusedPKey, refusedPKey, refusedPKey, refusedPKey},
		{"empty table", 0, full, refusedPKey, refusedPKey, refusedPKey, refusedPKey, refusedPKey},
		{"no P_Key", full, 0x8000, refusedPKey, refusedPKey, refusedPKey, refusedPKey, refusedPKey},
		{"no P_Key at an entry of base 0", 0x8000, 0x8000, refusedPKey, refusedPKey, refusedPKey, refusedPKey, refusedPKey},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := pair(t, Options{})
			sw, host := f.port(t, "leaf1", 2), f.port(t, "h1", 1)
			sw.withKeys(tt.entry)
			host.withKeys(tt.entry)
			for _, way := range []direction{inbound, outbound} {
				if got := sw.admits(packetIBA, tt.packet, way); got != admitted {
					t.Errorf("not enforcing, way %d: %d", way, got)
				}
			}
			sw.info.PartitionEnforcementInbound, sw.info.PartitionEnforcementOutbound = true, true
			for _, check := range []struct {
				what string
				got  verdict
				want verdict
			}{
				{"switch inbound", sw.admits(packetIBA, tt.packet, inbound), tt.swIn},
				{"switch outbound", sw.admits(packetIBA, tt.packet, outbound), tt.swOut},
				{"host inbound", host.admits(packetIBA, tt.packet, inbound), tt.hostIn},
				{"host outbound", host.admits(packetIBA, tt.packet, outbound), tt.hostUp},
				{"SMP", sw.admits(packetSMP, tt.packet, inbound), admitted},
				{"raw, not filtered", sw.admits(packetRaw, tt.packet, inbound), admitted},
			} {
				if check.got != check.want {
					t.Errorf("%s: %d, want %d", check.what, check.got, check.want)
				}
			}
			if err := f.SetDevice("leaf1", Device{InboundBaseOnly: true}); err != nil {
				t.Fatal(err)
			}
			if got := sw.admits(packetIBA, tt.packet, inbound); got != tt.baseOnly {
				t.Errorf("switch that sees the base alone: %d, want %d", got, tt.baseOnly)
			}
		})
	}
}

func TestRawFilters(t *testing.T) {
	f := pair(t, Options{})
	p := f.port(t, "leaf1", 1)
	p.info.FilterRawInbound = true
	if got := p.admits(packetRaw, 0, inbound); got != refusedRaw {
		t.Errorf("inbound: %d", got)
	}
	if got := p.admits(packetRaw, 0, outbound); got != admitted {
		t.Errorf("outbound: %d", got)
	}
	p.refuse(refusedRaw, &packetHead{}, inbound)
	if p.counters.PortRcvConstraintErrors != 1 || p.counters.PortXmitConstraintErrors != 0 {
		t.Errorf("counters %+v", p.counters)
	}
}

// refusals makes a fabric whose ports send traps to sm, and a station there.
func refusals(t testing.TB) (*Fabric, *Station) {
	t.Helper()
	f := pair(t, Options{})
	s, err := f.Station("sm", true)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range []*port{f.port(t, "sm", 1), f.port(t, "h1", 1), f.port(t, "leaf1", 0)} {
		p.info.LID, p.info.MasterSMLID = ib.LID(i+1), 1
		p.commit()
	}
	sw := f.port(t, "leaf1", 0).node.sw
	sw.info.LinearFDBTop = 3
	sw.linear = []byte{255, 1, 2, 0}
	for _, p := range []*port{f.port(t, "leaf1", 1), f.port(t, "leaf1", 2)} {
		p.info.PortState, p.peer.info.PortState = ib.PortActive, ib.PortActive
	}
	return f, s
}

func TestRefusedPacketsAreToldAndCounted(t *testing.T) {
	head := packetHead{slid: 7, dlid: 2, sqp: 0x123456, dqp: 0x42, qkey: 0x11, pkey: 0x8005, sl: 3}
	for _, tt := range []struct {
		name   string
		node   string
		port   ib.PortNum
		why    verdict
		way    direction
		number mad.TrapNum
		key    uint32
		check  func(*port) uint64
	}{
		{"P_Key at a host", "h1", 1, refusedPKey, inbound, mad.TrapBadPKey, 0x8005, func(p *port) uint64 { return uint64(p.info.PKeyViolations) }},
		{"Q_Key at a host", "h1", 1, refusedQKey, inbound, mad.TrapBadQKey, 0x11, func(p *port) uint64 { return uint64(p.info.QKeyViolations) }},
		{"P_Key at port 0", "leaf1", 0, refusedPKey, inbound, mad.TrapBadPKey, 0x8005, func(p *port) uint64 { return uint64(p.info.PKeyViolations) }},
		{"P_Key into a switch", "leaf1", 2, refusedPKey, inbound, mad.TrapBadPKeySwitch, 0x8005, func(p *port) uint64 { return uint64(p.counters.PortRcvConstraintErrors) }},
		{"P_Key out of a switch", "leaf1", 2, refusedPKey, outbound, mad.TrapBadPKeySwitch, 0x8005, func(p *port) uint64 { return uint64(p.counters.PortXmitConstraintErrors) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, sm := refusals(t)
			p := f.port(t, tt.node, tt.port)
			for range 300 {
				p.refuse(tt.why, &head, tt.way)
				f.run()
			}
			if got, want := tt.check(p), uint64(300); got != want && got != 255 {
				t.Errorf("counted %d, want %d or the largest value", got, want)
			}
			in := sm.Take(nil)
			if len(in) != 1 {
				t.Fatalf("%d traps for 300 refusals at one time, want 1", len(in))
			}
			var n mad.Notice
			must(mad.Decode(in[0].MAD.Data(), &n))
			if n.TrapNumber != tt.number || n.Type != mad.NoticeSecurity || in[0].LID != p.endPort().info.LID {
				t.Errorf("trap %v %v from %v", n.TrapNumber, n.Type, in[0].LID)
			}
			if tt.number == mad.TrapBadPKeySwitch {
				var d mad.Trap259
				must(mad.Decode(in[0].MAD.Data(), &d))
				if d.LIDADDR1 != 7 || d.LIDADDR2 != 2 || d.PKey != 0x8005 || d.QP1 != 0x123456 || d.SwitchLID != 3 || d.PortNum != 2 || d.SL != 3 {
					t.Errorf("details %+v", d)
				}
				return
			}
			var d mad.Trap257
			must(mad.Decode(in[0].MAD.Data(), &d))
			if d.LIDADDR1 != 7 || d.LIDADDR2 != 2 || d.Key != tt.key || d.QP1 != 0x123456 || d.QP2 != 0x42 || d.SL != 3 {
				t.Errorf("details %+v", d)
			}
		})
	}
}

// A flood of violations makes one trap in an interval, and TrapRepress ends
// the repetition but not the pace.
func TestSecurityTrapsArePaced(t *testing.T) {
	f, sm := refusals(t)
	p := f.port(t, "h1", 1)
	provoke := func(key ib.PKey) {
		p.refuse(refusedPKey, &packetHead{slid: 7, pkey: key}, inbound)
		f.run()
	}
	provoke(1)
	first := sm.Take(nil)
	first[0].MAD.Respond(mad.StatusOK)
	sm.Send(first[0])
	provoke(2)
	provoke(3)
	if got := sm.Take(nil); len(got) != 0 {
		t.Fatalf("%d traps inside the interval", len(got))
	}
	f.Advance(p.trapInterval())
	second := sm.Take(nil)
	if len(second) != 1 {
		t.Fatalf("%d traps after the interval", len(second))
	}
	var d mad.Trap257
	must(mad.Decode(second[0].MAD.Data(), &d))
	if d.Key != 3 {
		t.Errorf("the trap tells of %#x, want the newest", d.Key)
	}
	// The answer to the first trap, come late, does not stand for the second.
	sm.Send(first[0])
	f.Advance(p.trapInterval())
	if got := sm.Take(nil); len(got) != 1 {
		t.Fatalf("%d repetitions", len(got))
	}
	second[0].MAD.Respond(mad.StatusOK)
	sm.Send(second[0])
	f.Advance(time.Hour)
	if got := sm.Take(nil); len(got) != 0 {
		t.Errorf("%d traps after TrapRepress", len(got))
	}
	if at, more := f.NextEvent(); more {
		t.Errorf("something still waits for %v", at)
	}
}

// Modern ports can be set to send no traps about multicast.
func TestMulticastTrapSuppression(t *testing.T) {
	for _, tt := range []struct {
		name   string
		device Device
		told   uint8
		dlid   ib.LID
		traps  int
	}{
		{"not told", Modern(), 0, 0xC001, 1},
		{"told", Modern(), 1, 0xC001, 0},
		{"told, unicast", Modern(), 1, 2, 1},
		{"cannot", Device{}, 1, 0xC001, 1},
	} {
		f, sm := refusals(t)
		if err := f.SetDevice("h1", tt.device); err != nil {
			t.Fatal(err)
		}
		p := f.port(t, "h1", 1)
		p.node.reset(nil)
		if !p.linkUp() {
			p.info.PortState, p.info.PortPhysicalState = ib.PortActive, ib.PhysLinkUp
		}
		p.info.LID, p.info.MasterSMLID, p.info.MulticastPKeyTrapSuppressionEnabled = 2, 1, tt.told
		p.refuse(refusedPKey, &packetHead{slid: 9, dlid: tt.dlid, pkey: 5}, inbound)
		f.run()
		if got := len(sm.Take(nil)); got != tt.traps || p.info.PKeyViolations != 1 {
			t.Errorf("%s: %d traps, %d violations; want %d and 1", tt.name, got, p.info.PKeyViolations, tt.traps)
		}
	}
}

func TestCapacities(t *testing.T) {
	for _, tt := range []struct {
		name           string
		device         Device
		host, external int
	}{
		{"plain", Device{}, 64, 64},
		{"small", Device{PartitionCap: 2, EnforcementCap: 40}, 2, 40},
		{"a switch that cannot enforce", Device{NoEnforcement: true}, 64, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := pair(t, Options{Device: tt.device})
			host, external := f.port(t, "h1", 1), f.port(t, "leaf1", 2)
			var ni mad.NodeInfo
			must(mad.Decode(host.nodeInfo[:], &ni))
			if int(ni.PartitionCap) != tt.host || int(f.SwitchInfo("leaf1").PartitionEnforcementCap) != tt.external {
				t.Errorf("capacities %d and %d, want %d and %d", ni.PartitionCap, f.SwitchInfo("leaf1").PartitionEnforcementCap, tt.host, tt.external)
			}
			for _, at := range []struct {
				p   *port
				cap int
			}{{host, tt.host}, {external, tt.external}} {
				for entry := range 70 {
					var table mad.PKeyTable
					table.PKey[entry%mad.PKeysPerBlock] = 0x8001
					var m mad.MAD
					mad.NewSMP(&m, mad.Header{
						Method: mad.MethodSet, Attr: mad.AttrPKeyTable,
						Mod: mad.PKeyTableMod(at.p.num, uint16(entry/mad.PKeysPerBlock)),
					}, nil, ib.MKey{})
					if at.p.node.sw == nil {
						m.SetMod(uint32(entry / mad.PKeysPerBlock))
					}
					must(mad.Encode(m.Data(), &table))
					want := mad.StatusOK
					if entry >= at.cap {
						want = mad.StatusInvalidField
					}
					if got := at.p.agent(&m, guard.Full); got != want {
						t.Fatalf("entry %d of %s: %v, want %v", entry, at.p.node.name, got, want)
					}
				}
			}
		})
	}
}

// TestMuteSwitches: a switch without trap 259 does not report the capability. It counts packets that its ports refuse, and
// sends no trap.
func TestMuteSwitches(t *testing.T) {
	for _, silent := range []bool{false, true} {
		f := pair(t, Options{Device: Device{NoPKeyTraps: silent}})
		sw, st := f.port(t, "leaf1", 0), f.port(t, "leaf1", 2)
		sw.info.LID, sw.info.MasterSMLID = 3, 1
		if got := sw.info.CapabilityMask.Has(mad.IsPKeySwitchExternalPortTrapSupported); got == silent {
			t.Errorf("mute %t: the switch says that it sends trap 259: %t", silent, got)
		}
		st.refuse(refusedPKey, &packetHead{slid: 2, dlid: 1, pkey: 0x8002}, inbound)
		if in, _ := f.ConstraintErrors("leaf1", 2); in != 1 {
			t.Errorf("mute %t: %d packets are counted, want 1", silent, in)
		}
		if got := len(sw.node.traps) > 0; got == silent {
			t.Errorf("mute %t: a trap waits: %t", silent, got)
		}
	}
}
