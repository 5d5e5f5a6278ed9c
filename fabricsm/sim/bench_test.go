package sim_test

import (
	"bytes"
	"runtime"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport"
)

// row is a chain of five switches with a host on each: five links from sm to
// sw5, whose LID is 5 and to which every switch forwards.
func row(t testing.TB) (*sim.Fabric, *sim.Station) {
	t.Helper()
	l, err := netlist.Chain(netlist.Shape{Hosts: 5, Switches: 5})
	if err != nil {
		t.Fatal(err)
	}
	f := sim.New(l)
	s := station(t, f, "sm", false)
	portSet(t, s, 1, func(pi *mad.PortInfo) { pi.LID = 1 })
	route := []ib.PortNum{1}
	for i := range 5 {
		si := get[mad.SwitchInfo](t, s, mad.AttrSwitchInfo, 0, route...)
		si.LinearFDBTop = 63
		set(t, s, mad.AttrSwitchInfo, 0, si, route...)
		table := get[mad.LinearForwardingTable](t, s, mad.AttrLinearForwardingTable, 0, route...)
		table.Port[1], table.Port[5] = 1, 2
		if i == 0 {
			table.Port[1] = 3
		}
		if i == 4 {
			table.Port[5] = 0
			portSet(t, s, 0, func(pi *mad.PortInfo) { pi.LID = 5 }, route...)
		}
		if status, _ := set(t, s, mad.AttrLinearForwardingTable, 0, table, route...); status != mad.StatusOK {
			t.Fatalf("Set of forwarding: %v", status)
		}
		route = append(route, 2)
	}
	return f, s
}

// smps are requests to sw5, over five links there and five back.
func smps(t testing.TB, s *sim.Station) map[string][]transport.Packet {
	t.Helper()
	far := []ib.PortNum{1, 2, 2, 2, 2}
	table := get[mad.LinearForwardingTable](t, s, mad.AttrLinearForwardingTable, 0, far...)
	headers := map[string]mad.Header{
		"Get NodeInfo": {Method: mad.MethodGet, Attr: mad.AttrNodeInfo},
		"Get PortInfo": {Method: mad.MethodGet, Attr: mad.AttrPortInfo, Mod: 1},
		"Set LFT":      {Method: mad.MethodSet, Attr: mad.AttrLinearForwardingTable},
	}
	all := map[string][]transport.Packet{}
	for name, h := range headers {
		for way, p := range map[string]transport.Packet{"directed": directed(h, far...), "by LID": toLID(5, h)} {
			if h.Method == mad.MethodSet {
				if err := mad.Encode(p.MAD.Data(), &table); err != nil {
					t.Fatal(err)
				}
			}
			all[name+", "+way] = []transport.Packet{p}
		}
	}
	return all
}

func TestSMPsAllocateNothing(t *testing.T) {
	_, s := row(t)
	var got []transport.Packet
	for name, p := range smps(t, s) {
		t.Run(name, func(t *testing.T) {
			n := testing.AllocsPerRun(100, func() { got = s.Exchange(p, got[:0]) })
			if n != 0 {
				t.Errorf("%v allocations, want none", n)
			}
			if len(got) != 1 || got[0].Undelivered || got[0].MAD.Status() != mad.StatusOK {
				t.Errorf("%d answers, %v", len(got), got)
			}
		})
	}
}

// BenchmarkSimSMP is requests and answers over five links, one at a time, on one
// core.
func BenchmarkSimSMP(b *testing.B) {
	_, s := row(b)
	var got []transport.Packet
	for name, p := range smps(b, s) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				got = s.Exchange(p, got[:0])
			}
			if len(got) != 1 || got[0].MAD.Status() != mad.StatusOK {
				b.Fatal("no answer")
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "SMPs/s")
		})
	}
}

// A fabric of 10,000 hosts takes a fraction of the 2 GiB that it may.
func TestTenThousandHosts(t *testing.T) {
	const most = 256 << 20
	l, err := netlist.FatTree3(netlist.Shape{Hosts: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f := sim.New(l)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got := int64(after.HeapAlloc) - int64(before.HeapAlloc); got > most {
		t.Errorf("the fabric holds %d MiB, want at most %d", got>>20, most>>20)
	}
	if got := f.PortInfo("h9999", 1).PortState; got != ib.PortInit {
		t.Errorf("the port of the last host is %v", got)
	}
}

// BenchmarkSimStart builds a fabric of 10,000 hosts, from its netlist's text to links in Init. MiB is its memory at the
// end, MiB-asked the allocated memory in total.
func BenchmarkSimStart(b *testing.B) {
	l, err := netlist.FatTree3(netlist.Shape{Hosts: 10_000})
	if err != nil {
		b.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		b.Fatal(err)
	}
	var f *sim.Fabric
	var before, after runtime.MemStats
	for b.Loop() {
		b.StopTimer()
		f = nil
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		if l, err = netlist.Parse("fabric", text.Bytes()); err != nil {
			b.Fatal(err)
		}
		f = sim.New(l)
	}
	b.StopTimer()
	l = nil
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/(1<<20), "MiB-asked")
	if f.PortInfo("sm", 1).PortState != ib.PortInit {
		b.Fatal("the links are not up")
	}
}
