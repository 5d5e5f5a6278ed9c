package sim

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/guard"
	"portcullis/fabricsm/sim/perf"
)

// readCounters asks the agent of a port for an attribute of performance
// management.
func readCounters[T any](t testing.TB, p *port, method mad.Method, attr mad.AttrID, num byte, selected uint16) (v T) {
	t.Helper()
	var m mad.MAD
	m.SetHeader(mad.Header{Class: mad.ClassPerf, ClassVersion: 1, Method: method, Attr: attr})
	data := m[perfDataOffset:]
	data[1], data[2], data[3] = num, byte(selected>>8), byte(selected)
	if status := p.agent(&m, guard.Full); status != mad.StatusOK {
		t.Fatal(status)
	}
	must(mad.Decode(data, &v))
	return v
}

func TestCountersOfEveryKind(t *testing.T) {
	f := pair(t, Options{})
	sw := f.port(t, "leaf1", 2)
	all := mad.PortCounters{
		SymbolErrorCounter: 1, LinkErrorRecoveryCounter: 2, LinkDownedCounter: 3, PortRcvErrors: 4, PortRcvRemotePhysicalErrors: 5,
		PortRcvSwitchRelayErrors: 6, PortXmitDiscards: 7, PortXmitConstraintErrors: 8, PortRcvConstraintErrors: 9,
		LocalLinkIntegrityErrors: 10, ExcessiveBufferOverrunErrors: 11, VL15Dropped: 12,
	}
	sw.counters.PortCounters = all
	sw.counters.Traffic = perf.Traffic{XmitData: 13, RcvData: 14, XmitPkts: 15, RcvPkts: 16}
	want := all
	want.PortXmitData, want.PortRcvData, want.PortXmitPkts, want.PortRcvPkts = 13, 14, 15, 16
	// Each bit of CounterSelect clears its counter and no other.
	fields := []func(*mad.PortCounters){
		func(c *mad.PortCounters) { c.SymbolErrorCounter = 0 }, func(c *mad.PortCounters) { c.LinkErrorRecoveryCounter = 0 },
		func(c *mad.PortCounters) { c.LinkDownedCounter = 0 }, func(c *mad.PortCounters) { c.PortRcvErrors = 0 },
		func(c *mad.PortCounters) { c.PortRcvRemotePhysicalErrors = 0 }, func(c *mad.PortCounters) { c.PortRcvSwitchRelayErrors = 0 },
		func(c *mad.PortCounters) { c.PortXmitDiscards = 0 }, func(c *mad.PortCounters) { c.PortXmitConstraintErrors = 0 },
		func(c *mad.PortCounters) { c.PortRcvConstraintErrors = 0 }, func(c *mad.PortCounters) { c.LocalLinkIntegrityErrors = 0 },
		func(c *mad.PortCounters) { c.ExcessiveBufferOverrunErrors = 0 }, func(c *mad.PortCounters) { c.VL15Dropped = 0 },
		func(c *mad.PortCounters) { c.PortXmitData = 0 }, func(c *mad.PortCounters) { c.PortRcvData = 0 },
		func(c *mad.PortCounters) { c.PortXmitPkts = 0 }, func(c *mad.PortCounters) { c.PortRcvPkts = 0 },
	}
	selects := cmpopts.IgnoreFields(mad.PortCounters{}, "PortSelect", "CounterSelect")
	for bit, cleared := range fields {
		got := readCounters[mad.PortCounters](t, sw, mad.MethodGet, mad.PerfAttrPortCounters, 2, 0)
		if diff := cmp.Diff(got, want, selects); diff != "" {
			t.Fatalf("before bit %d: got-, want+\n%s", bit, diff)
		}
		cleared(&want)
		got = readCounters[mad.PortCounters](t, sw, mad.MethodSet, mad.PerfAttrPortCounters, 2, 1<<bit)
		if diff := cmp.Diff(got, want, selects); diff != "" {
			t.Fatalf("bit %d: got-, want+\n%s", bit, diff)
		}
	}
	// The 64-bit counters are others.
	wantLong := mad.PortCountersExtended{
		PortXmitData: 13, PortRcvData: 14, PortXmitPkts: 15, PortRcvPkts: 16, PortUnicastXmitPkts: 15, PortUnicastRcvPkts: 16,
	}
	selects = cmpopts.IgnoreFields(mad.PortCountersExtended{}, "PortSelect", "CounterSelect")
	if diff := cmp.Diff(readCounters[mad.PortCountersExtended](t, sw, mad.MethodGet, mad.PerfAttrPortCountersExtended, 2, 0), wantLong, selects); diff != "" {
		t.Errorf("64-bit counters: got-, want+\n%s", diff)
	}
	wantLong.PortRcvData, wantLong.PortUnicastXmitPkts = 0, 0
	if diff := cmp.Diff(readCounters[mad.PortCountersExtended](t, sw, mad.MethodSet, mad.PerfAttrPortCountersExtended, 2, 1<<1|1<<4), wantLong, selects); diff != "" {
		t.Errorf("64-bit counters, two cleared: got-, want+\n%s", diff)
	}
}

func TestCountersSaturate(t *testing.T) {
	f := pair(t, Options{})
	one, two := f.port(t, "leaf1", 1), f.port(t, "leaf1", 2)
	for _, p := range []*port{one, two} {
		p.counters.PortCounters = mad.PortCounters{PortXmitConstraintErrors: 200, PortXmitDiscards: 60000, LocalLinkIntegrityErrors: 9}
		p.counters.Traffic = perf.Traffic{XmitData: math.MaxUint32 + 5, XmitPkts: math.MaxUint32 - 1, MulticastXmit: 1}
	}
	got := readCounters[mad.PortCounters](t, one, mad.MethodGet, mad.PerfAttrPortCounters, 2, 0)
	if got.PortXmitData != math.MaxUint32 || got.PortXmitPkts != math.MaxUint32-1 {
		t.Errorf("32-bit counters: %+v", got)
	}
	got = readCounters[mad.PortCounters](t, one, mad.MethodGet, mad.PerfAttrPortCounters, allPorts, 0)
	if got.PortXmitConstraintErrors != 255 || got.PortXmitDiscards != 65535 || got.LocalLinkIntegrityErrors != 15 || got.PortXmitPkts != math.MaxUint32 {
		t.Errorf("sum of all ports: %+v", got)
	}
	long := readCounters[mad.PortCountersExtended](t, one, mad.MethodGet, mad.PerfAttrPortCountersExtended, 2, 0)
	if long.PortXmitData != math.MaxUint32+5 || long.PortMulticastXmitPkts != 1 || long.PortUnicastXmitPkts != math.MaxUint32-2 {
		t.Errorf("64-bit counters: %+v", long)
	}
	if readCounters[mad.PortCounters](t, one, mad.MethodSet, mad.PerfAttrPortCounters, 2, 1<<12).PortXmitData != 0 {
		t.Error("the 32-bit counter was not reset")
	}
}

// Errors of links are counted and reported, and the manager's answer ends the report.
func TestLinkErrors(t *testing.T) {
	for _, tt := range []struct {
		kind   LinkError
		number mad.TrapNum // 0: none
		check  func(*mad.PortCounters) int
	}{
		{SymbolError, 0, func(c *mad.PortCounters) int { return int(c.SymbolErrorCounter) }},
		{ReceiveError, 0, func(c *mad.PortCounters) int { return int(c.PortRcvErrors) }},
		{RecoveryError, 0, func(c *mad.PortCounters) int { return int(c.LinkErrorRecoveryCounter) }},
		{IntegrityError, mad.TrapLinkIntegrity, func(c *mad.PortCounters) int { return int(c.LocalLinkIntegrityErrors) }},
		{OverrunError, mad.TrapBufferOverrun, func(c *mad.PortCounters) int { return int(c.ExcessiveBufferOverrunErrors) }},
		{FlowControlError, mad.TrapFlowControl, func(*mad.PortCounters) int { return 3 }},
	} {
		t.Run(tt.kind.String(), func(t *testing.T) {
			f, sm := refusals(t)
			if err := f.LinkErrors("leaf1", 2, tt.kind, 3); err != nil {
				t.Fatal(err)
			}
			c := f.port(t, "leaf1", 2).counters.Short()
			if got := tt.check(&c); got != 3 {
				t.Errorf("counted %d, want 3", got)
			}
			in := sm.Take(nil)
			if tt.number == 0 {
				if len(in) != 0 {
					t.Errorf("%d traps", len(in))
				}
				return
			}
			if len(in) != 1 {
				t.Fatalf("%d traps, want 1", len(in))
			}
			var n mad.Trap129
			must(mad.Decode(in[0].MAD.Data(), &n))
			if n.TrapNumber != tt.number || n.LID != 3 || n.PortNum != 2 || n.Type != mad.NoticeUrgent {
				t.Errorf("%+v", n)
			}
		})
	}
	f := pair(t, Options{})
	for _, num := range []ib.PortNum{0, 9} {
		if err := f.LinkErrors("leaf1", num, SymbolError, 1); err == nil {
			t.Errorf("port %d has errors of a link", num)
		}
	}
}

func TestSystemImageTrap(t *testing.T) {
	f, sm := refusals(t)
	if err := f.SetSystemImage("h1", 0x77); err != nil {
		t.Fatal(err)
	}
	in := sm.Take(nil)
	if len(in) != 1 {
		t.Fatalf("%d traps, want 1", len(in))
	}
	var n mad.Trap145
	must(mad.Decode(in[0].MAD.Data(), &n))
	var ni mad.NodeInfo
	must(mad.Decode(f.port(t, "h1", 1).nodeInfo[:], &ni))
	if n.TrapNumber != mad.TrapSystemImageGUID || n.NewSystemImageGUID != 0x77 || ni.SystemImageGUID != 0x77 {
		t.Errorf("trap %+v, NodeInfo %v", n, ni.SystemImageGUID)
	}
}
