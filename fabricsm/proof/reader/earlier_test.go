package reader_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/proof/reader/readertest"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/testbed"
)

// after reads again what was touched since an earlier reading.
func (b *bed) after(was *reader.Found, touched ...reader.Value) *reader.Found {
	b.t.Helper()
	defer func() { b.options.Earlier = nil }()
	b.options.Earlier = &reader.Earlier{Found: was, Touched: func(v reader.Value) bool { return slices.Contains(touched, v) }}
	return b.read()
}

func (b *bed) guid(node string) ib.GUID { return b.list.Find(node).GUID }

// port returns the values of a port and what is behind it.
func (b *bed) port(node string, num ib.PortNum) (all []reader.Value) {
	for _, attr := range []mad.AttrID{mad.AttrNodeInfo, mad.AttrPortInfo, mad.AttrPKeyTable} {
		all = append(all, reader.Value{Node: b.guid(node), Port: num, Attr: attr})
	}
	return all
}

// own is how many requests the own adapter takes, which is read whole each time: NodeInfo, PortInfo, two blocks of P_Keys and
// the SLtoVL table, twice.
const own = 10

// compare requires that reading again what was touched finds what a reading of everything finds, with so many requests besides own.
func (b *bed) compare(was *reader.Found, sent int, touched ...reader.Value) {
	b.t.Helper()
	now := b.after(was, touched...)
	all := b.read()
	b.same(now, all)
	b.compareOnly(was, all, sent, touched)
	if now.Sent != own+sent {
		b.t.Errorf("%d requests were sent besides the own %d, want %d", now.Sent-own, own, sent)
	}
	if readertest.Facts(was) == readertest.Facts(all) && len(touched) > 0 {
		b.t.Error("the change that was made cannot be read: the case shows nothing")
	}
}

// compareOnly requires that a reading of nothing but what was touched finds the same. The own adapter is not read where only P_Key tables are.
func (b *bed) compareOnly(was, all *reader.Found, sent int, touched []reader.Value) {
	b.t.Helper()
	before := readertest.Facts(was)
	only := b.only(was, touched...)
	b.same(only, all)
	want := sent
	if slices.ContainsFunc(touched, func(v reader.Value) bool { return v.Attr != mad.AttrPKeyTable }) {
		want += own
	}
	if only.Sent != want {
		b.t.Errorf("%d requests were sent for what was touched, want %d", only.Sent, want)
	}
	if readertest.Facts(was) != before {
		b.t.Error("the earlier reading was changed")
	}
	again := b.only(only) // a reading that built on another one is a whole one
	b.same(again, all)
	if again.Sent != 0 {
		b.t.Errorf("%d requests were sent where nothing was touched", again.Sent)
	}
}

// only reads again what was touched, and says that it is all.
func (b *bed) only(was *reader.Found, touched ...reader.Value) *reader.Found {
	b.t.Helper()
	defer func() { b.options.Earlier = nil }()
	b.options.Earlier = &reader.Earlier{Found: was, Only: append([]reader.Value{}, touched...), Touched: func(v reader.Value) bool { return slices.Contains(touched, v) }}
	return b.read()
}

// TestOnlyPKeys reads P_Key tables alone, of which one changes meanwhile or is not answered.
func TestOnlyPKeys(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	was := b.read()
	host, at := reader.Value{Node: b.guid("h1"), Port: 1, Attr: mad.AttrPKeyTable}, b.place("h1")
	front := reader.Value{Node: at.Switch, Port: at.Port, Attr: mad.AttrPKeyTable}
	for name, c := range map[string]struct {
		change func(round int, m *mad.MAD) bool
		how    proof.Reading
		cause  reader.Cause
	}{
		"changes":            {func(round int, m *mad.MAD) bool { m.Data()[1] ^= byte(round); return true }, proof.Inconsistent, reader.Changed},
		"half of it changes": {func(round int, m *mad.MAD) bool { m.Data()[1] ^= byte(round) * byte(m.Mod()); return true }, proof.Inconsistent, reader.Changed},
		"no answer":          {func(int, *mad.MAD) bool { return false }, proof.NotRead, reader.Silent},
		"then silent":        {func(round int, _ *mad.MAD) bool { return round == 0 }, proof.NotRead, reader.Silent},
	} {
		asked := 0
		b.change = func(round int, m *mad.MAD) bool {
			if m.Attr() != mad.AttrPKeyTable {
				t.Errorf("%s: attribute %v was asked for", name, m.Attr())
			}
			if asked++; m.Mod()>>16 != 0 { // of the switch port
				return true
			}
			return c.change(round, m)
		}
		got := b.only(was, host, front)
		b.change = nil
		if len(got.Unknown) != len(was.Unknown)+1 || asked == 0 {
			t.Errorf("%s: %d values are unknown after %d answers: %v", name, len(got.Unknown), asked, got.Unknown)
			continue
		}
		u := got.Unknown[len(got.Unknown)-1]
		table := got.Fabric.Devices[u.Port.Device].Ports[u.Port.Port].PKeys
		if got.Fabric.Devices[u.Port.Device].GUID != host.Node || u.What != "P_Key table" || u.Cause != c.cause || table.How != c.how {
			t.Errorf("%s: %v, and the table was %v", name, u, table.How)
		}
		next := b.only(got, host)
		b.same(next, b.read()) // it was not read, so everything that is needed is asked
	}
	for name, v := range map[string]reader.Value{
		"no such device": {Node: 1, Port: 1, Attr: mad.AttrPKeyTable}, "no such port": {Node: host.Node, Port: 9, Attr: mad.AttrPKeyTable},
		"port 0": {Node: front.Node, Attr: mad.AttrPKeyTable}, "another attribute": {Node: host.Node, Port: 1, Attr: mad.AttrPortInfo},
	} {
		if got := b.only(was, host, v); got.Sent < own {
			t.Errorf("%s: %d requests were sent", name, got.Sent)
		}
	}
}

func TestReadsAgainWhatWasTouched(t *testing.T) {
	t.Parallel()
	stray := func(data []byte) { binary.BigEndian.PutUint16(data[2*9:], uint16(redKey.Full())) }
	leafOf := func(b *bed, host string) (string, ib.PortNum) {
		at := b.place(host)
		return b.node(at.Switch), at.Port
	}
	for name, c := range map[string]struct {
		sent   int
		change func(b *bed) []reader.Value
	}{
		"nothing": {0, func(*bed) []reader.Value { return nil }},
		"P_Key at a switch port": {4, func(b *bed) []reader.Value {
			leaf, num := leafOf(b, "h1")
			b.write(leaf, mad.AttrPKeyTable, mad.PKeyTableMod(num, 0), stray)
			return []reader.Value{{Node: b.guid(leaf), Port: num, Attr: mad.AttrPKeyTable}}
		}},
		"P_Key at an adapter": {4, func(b *bed) []reader.Value {
			b.write("h1", mad.AttrPKeyTable, 0, stray)
			return []reader.Value{{Node: b.guid("h1"), Port: 1, Attr: mad.AttrPKeyTable}}
		}},
		"enforcement": {2, func(b *bed) []reader.Value {
			leaf, num := leafOf(b, "h2")
			b.write(leaf, mad.AttrPortInfo, mad.PortInfoMod(num, 0), func(data []byte) {
				alter(b.t, data, func(p *mad.PortInfo) {
					p.PartitionEnforcementOutbound = false
					p.PortState, p.PortPhysicalState, p.LinkDownDefaultState = 0, 0, 0
				})
			})
			return []reader.Value{{Node: b.guid(leaf), Port: num, Attr: mad.AttrPortInfo}}
		}},
		"route": {2, func(b *bed) []reader.Value {
			leaf, _ := leafOf(b, "h1")
			b.write(leaf, mad.AttrLinearForwardingTable, 0, func(data []byte) { data[3] ^= 1 })
			return []reader.Value{{Node: b.guid(leaf), Attr: mad.AttrLinearForwardingTable}}
		}},
		"longer table": {2 + 4, func(b *bed) []reader.Value {
			leaf, _ := leafOf(b, "h1")
			b.write(leaf, mad.AttrSwitchInfo, 0, func(data []byte) { binary.BigEndian.PutUint16(data[6:], 100) })
			return []reader.Value{{Node: b.guid(leaf), Attr: mad.AttrSwitchInfo}}
		}},
		"group": {2 + 2, func(b *bed) []reader.Value {
			leaf, _ := leafOf(b, "h1")
			b.makeGroup(leaf)
			b.write(leaf, mad.AttrMulticastForwardingTable, 0, func(data []byte) { data[1] = 6 })
			return []reader.Value{{Node: b.guid(leaf), Attr: mad.AttrSwitchInfo}, {Node: b.guid(leaf), Attr: mad.AttrMulticastForwardingTable}}
		}},
		"host without link": {4, func(b *bed) []reader.Value {
			leaf, num := leafOf(b, "h1")
			b.must(b.fabric.Unlink(leaf, num))
			return b.port(leaf, num)
		}},
		"two hosts swapped": {32, func(b *bed) []reader.Value {
			leaf1, num1 := leafOf(b, "h1")
			leaf2, num2 := leafOf(b, "h4")
			b.must(b.fabric.Swap(sim.Endpoint{Node: "h1", Port: 1}, sim.Endpoint{Node: "h4", Port: 1}))
			return append(b.port(leaf1, num1), b.port(leaf2, num2)...)
		}},
		"a lost cable between switches": {8, func(b *bed) []reader.Value {
			leaf, _ := leafOf(b, "h1")
			up, num := b.uplink(leaf)
			b.must(b.fabric.Unlink(leaf, num))
			far := b.list.Find(leaf).Ports[num].PeerPort
			return append(b.port(leaf, num), b.port(up, far)...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			was := b.read()
			b.compare(was, c.sent, c.change(b)...)
		})
	}
}

// alter changes an attribute in wire format.
func alter[T any](t *testing.T, data []byte, change func(*T)) {
	t.Helper()
	var v T
	if err := mad.Decode(data, &v); err != nil {
		t.Fatal(err)
	}
	change(&v)
	mad.MustEncode(data, &v)
}

// same requires that a reading found what one of everything finds.
func (b *bed) same(now, all *reader.Found) {
	b.t.Helper()
	for _, line := range readertest.Differences(now, all) {
		b.t.Error(line)
	}
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// uplink returns the first switch that a leaf is cabled to, and the port of the leaf.
func (b *bed) uplink(leaf string) (string, ib.PortNum) {
	for num, p := range b.list.Find(leaf).Ports {
		if p.Peer != "" && b.list.Find(p.Peer).Type == ib.NodeSwitch {
			return p.Peer, ib.PortNum(num)
		}
	}
	b.t.Fatalf("%s has no uplink", leaf)
	return "", 0
}

// TestSilentIsAskedAgain reads a host that did not answer before, though nothing of it was touched.
func TestSilentIsAskedAgain(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.must(b.fabric.SetFault("h1", sim.Fault{Silent: true}))
	was := b.read()
	if len(was.Unknown) == 0 {
		t.Fatal("a silent host is not unknown")
	}
	b.must(b.fabric.SetFault("h1", sim.Fault{}))
	b.same(b.after(was), b.read())
}

// TestUnreadIsAskedAgain loses the answers of one attribute of one device in the earlier reading alone.
func TestUnreadIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, attr := range []mad.AttrID{
		mad.AttrNodeInfo, mad.AttrPortInfo, mad.AttrSwitchInfo, mad.AttrPKeyTable, mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable,
		mad.AttrSLtoVLMappingTable,
	} {
		for _, host := range []bool{true, false} {
			if host && attr != mad.AttrNodeInfo && attr != mad.AttrPortInfo && attr != mad.AttrPKeyTable && attr != mad.AttrSLtoVLMappingTable {
				continue
			}
			t.Run(fmt.Sprintf("%v of an adapter %t", attr, host), func(t *testing.T) {
				t.Parallel()
				b := newBed(t)
				node := "h1"
				if !host {
					node = b.node(b.place("h1").Switch)
				}
				b.makeGroup(b.node(b.place("h1").Switch))
				b.change = func(_ int, m *mad.MAD) bool { return !b.to(m, node, attr) }
				was := b.read()
				if len(was.Unknown) == 0 {
					t.Fatal("answers were lost, and nothing is unknown")
				}
				b.change = nil
				b.same(b.after(was), b.read())
			})
		}
	}
}

// TestLargerTablesAreRead has a switch say that its tables are larger. Only what says so was touched.
func TestLargerTablesAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attr   mad.AttrID
		change func(t *testing.T, data []byte)
	}{
		"P_Keys": {mad.AttrSwitchInfo, func(t *testing.T, data []byte) {
			t.Helper()
			alter(t, data, func(si *mad.SwitchInfo) { si.PartitionEnforcementCap = 32 })
		}},
		"groups": {mad.AttrSwitchInfo, func(t *testing.T, data []byte) {
			t.Helper()
			alter(t, data, func(si *mad.SwitchInfo) { si.MulticastFDBTop += 32 })
		}},
		"no groups": {mad.AttrSwitchInfo, func(t *testing.T, data []byte) {
			t.Helper()
			alter(t, data, func(si *mad.SwitchInfo) { si.MulticastFDBTop = ib.MinMulticastLID - 1 })
		}},
		"all groups": {mad.AttrPortInfo, func(t *testing.T, data []byte) {
			t.Helper()
			alter(t, data, func(p *mad.PortInfo) { p.CapabilityMask &^= mad.IsMulticastFDBTopSupported })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			leaf := b.node(b.place("h1").Switch)
			b.makeGroup(leaf)
			for block := range uint16(2) {
				b.write(leaf, mad.AttrMulticastForwardingTable, mad.MulticastForwardingMod(0, block), func(data []byte) { data[1] = 6 })
			}
			was := b.read()
			b.change = func(_ int, m *mad.MAD) bool {
				if b.to(m, leaf, c.attr) && (c.attr == mad.AttrSwitchInfo || m.Mod() == mad.PortInfoMod(0, 0)) {
					c.change(t, m.Data())
				}
				return true
			}
			touched := reader.Value{Node: b.guid(leaf), Attr: c.attr}
			now := b.after(was, touched)
			if b.same(now, b.read()); readertest.Facts(now) == readertest.Facts(was) {
				t.Error("the change cannot be read: the case shows nothing")
			}
		})
	}
}

// TestKnownAfterConflict ends that another adapter shows the GUID of one, of which nothing was believed until then.
func TestKnownAfterConflict(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	mine, at := b.guid("h5"), b.place("h5")
	b.must(b.fabric.SetGUIDs("h5", b.guid("h1"), b.guid("h1")))
	was := b.read()
	b.must(b.fabric.SetGUIDs("h5", mine, mine))
	b.write("h1", mad.AttrPKeyTable, 0, func(data []byte) { binary.BigEndian.PutUint16(data[2*9:], uint16(blueKey.Full())) })
	b.same(b.after(was, b.port(b.node(at.Switch), at.Port)...), b.read())
}

// TestForeignDeviceWithKnownGUID has another adapter show the GUID of a known one behind a port that was touched.
func TestForeignDeviceWithKnownGUID(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	was := b.read()
	at := b.place("h5")
	b.must(b.fabric.SetGUIDs("h5", b.guid("h1"), b.guid("h1")))
	now := b.after(was, b.port(b.node(at.Switch), at.Port)...)
	if d := b.device(now, "h1"); !slices.ContainsFunc(now.Unknown, func(u reader.Unknown) bool { return u.Cause == reader.Nonsense }) || d.Ports[1].PKeys.How == proof.WasRead {
		t.Errorf("two adapters with one GUID: unknown is %v, and of the P_Key table is believed %v", now.Unknown, d.Ports[1].PKeys)
	}
	if v := b.verdict(now); v.Depth() != 0 && len(now.Unknown) == 0 {
		t.Errorf("isolation follows: %v", v.Depth())
	}
}

// TestAnotherAdapterIsReadWhole replaces an adapter by one with the same GUID and other P_Keys: only the NodeInfo that leads to it was touched.
func TestAnotherAdapterIsReadWhole(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	was := b.read()
	b.write("h1", mad.AttrPKeyTable, 0, func(data []byte) { binary.BigEndian.PutUint16(data[2*9:], uint16(blueKey.Full())) })
	at := b.place("h1")
	b.compare(was, 10, reader.Value{Node: at.Switch, Port: at.Port, Attr: mad.AttrNodeInfo})
}

// TestUntouchedIsTakenOver shows that a value is not read again unless it was touched: what the other tests compare is not read in any case.
func TestUntouchedIsTakenOver(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	was := b.read()
	b.write("h1", mad.AttrPKeyTable, 0, func(data []byte) { binary.BigEndian.PutUint16(data[2*9:], uint16(blueKey.Full())) })
	if now := b.after(was); readertest.Facts(now) != readertest.Facts(was) {
		t.Error("a value that was not touched was read")
	}
}

// TestReadingsBuildOnEachOther makes many changes, and reads each again on top of all before.
func TestReadingsBuildOnEachOther(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	was := b.read()
	for i := range 12 {
		host := fmt.Sprintf("h%d", i%4+1)
		at := b.place(host)
		leaf := b.node(at.Switch)
		b.write(leaf, mad.AttrPKeyTable, mad.PKeyTableMod(at.Port, 0), func(data []byte) {
			binary.BigEndian.PutUint16(data[2*(8+i):], uint16(0x8300+i))
		})
		was = b.after(was, reader.Value{Node: b.guid(leaf), Port: at.Port, Attr: mad.AttrPKeyTable})
	}
	b.same(was, b.read())
}

// TestTooFar reads a line of switches that is longer than a directed route.
func TestTooFar(t *testing.T) {
	t.Parallel()
	list, err := netlist.Chain(netlist.Shape{Hosts: 1, Switches: mad.MaxHops + 3, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	stage, err := testbed.New(testbed.Options{Netlist: list, Manager: "sm"})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, list: list, fabric: stage.Fabric, rounds: map[asked]int{}}
	b.station, err = b.fabric.Station("sm", false)
	b.must(err)
	random := rand.New(rand.NewPCG(1, 2))
	b.options = reader.Options{Owner: b.owner, Draw: random.Uint32, Window: 4, Attempts: 3}
	found := b.read()
	want := ""
	for num := range 2 {
		want += fmt.Sprintf("the device behind of switch %v port %d: %v\n", b.guid(fmt.Sprintf("sw%d", mad.MaxHops)), num+1, reader.TooFar)
	}
	got := ""
	for _, u := range found.Unknown {
		got += u.String() + "\n"
	}
	if got != want {
		t.Errorf("unknown is\n%s, want\n%s", got, want)
	}
	if n := len(found.Fabric.Devices); n != 1+mad.MaxHops {
		t.Errorf("%d devices were found, want %d", n, 1+mad.MaxHops)
	}
}

func TestEarlierIsComplete(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	o := b.options
	for _, e := range []reader.Earlier{{}, {Found: &reader.Found{Fabric: &proof.Fabric{}}}, {Touched: func(reader.Value) bool { return true }}} {
		o.Earlier = &e
		if _, err := reader.New(o); err == nil {
			t.Errorf("an earlier reading without %+v is taken", e)
		}
	}
}
