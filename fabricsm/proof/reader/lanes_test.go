package reader_test

import (
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/proof/reader/readertest"
	"portcullis/fabricsm/sim"
)

// lanesOf returns what was read of the SLtoVL tables of a node, by egress port.
func (b *bed) lanesOf(f *reader.Found, node string) map[ib.PortNum]reader.Lanes {
	out := map[ib.PortNum]reader.Lanes{}
	for _, l := range f.Lanes {
		if f.Fabric.Devices[l.Port.Device].GUID == b.guid(node) {
			out[l.Port.Port] = l
		}
	}
	return out
}

// TestReadsLanes reads an SLtoVL table of each port that is up: of switches those of packets that came in by the port before it that is up.
func TestReadsLanes(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	at := b.place("h1")
	leaf := b.node(at.Switch)
	b.write("h2", mad.AttrSLtoVLMappingTable, 0, func(data []byte) { data[0] = 0x3F })
	b.write(leaf, mad.AttrSLtoVLMappingTable, mad.SLtoVLMod(at.Port, at.Port+1), func(data []byte) { data[7] = 0xF2 })
	found := b.read()
	ports := 0
	for i := range b.list.Nodes {
		n := &b.list.Nodes[i]
		before, tables := ib.PortNum(0), b.lanesOf(found, n.Name)
		for num := 1; num < len(n.Ports); num++ {
			out := ib.PortNum(num)
			l, ok := tables[out]
			if _, linked := b.fabric.Cable(n.Name, out); ok != linked {
				t.Errorf("%s port %d: a table was read: %t, and it is cabled: %t", n.Name, num, ok, linked)
			}
			if !ok {
				continue
			}
			ports++
			if l.In != before || l.Table != proof.Known(b.fabric.SLtoVL(n.Name, before, out)) {
				t.Errorf("%s port %d: %+v, want %v of packets from port %d", n.Name, num, l, b.fabric.SLtoVL(n.Name, before, out), before)
			}
			if n.Type == ib.NodeSwitch {
				before = out
			}
		}
	}
	if ports != len(found.Lanes) || ports < 20 {
		t.Errorf("%d tables were read, %d of them of ports of the netlist", len(found.Lanes), ports)
	}
	if got := b.lanesOf(found, "h2")[1].Table.Value.VL; got[0] != 3 || got[1] != ib.VL15 {
		t.Errorf("the table that was written at h2 was read as %v", got)
	}
	if got := b.lanesOf(found, leaf)[at.Port+1].Table.Value.VL; got[14] != ib.VL15 || got[15] != 2 {
		t.Errorf("the table that was written at %s was read as %v", leaf, got)
	}
	sorted := slices.IsSortedFunc(found.Lanes, func(a, b reader.Lanes) int {
		if a.Port.Device != b.Port.Device {
			return a.Port.Device - b.Port.Device
		}
		return int(a.Port.Port) - int(b.Port.Port)
	})
	if !sorted {
		t.Errorf("the tables are not in the order of devices and ports: %v", found.Lanes)
	}
}

// TestUnreadLanes: a table that is not answered, refused, answered with nonsense, or that changes, is not known and listed; no verdict is
// another one for it.
func TestUnreadLanes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(round int, m *mad.MAD) bool
		cause reader.Cause
		how   proof.Reading
	}{
		"silent":   {func(int, *mad.MAD) bool { return false }, reader.Silent, proof.NotRead},
		"refused":  {func(_ int, m *mad.MAD) bool { m.SetStatus(mad.StatusInvalidField); return true }, reader.Refused, proof.NotRead},
		"nonsense": {func(_ int, m *mad.MAD) bool { m.SetMod(m.Mod() ^ 1<<9); return true }, reader.Nonsense, proof.NotRead},
		"changed":  {func(round int, m *mad.MAD) bool { m.Data()[3] ^= byte(round); return true }, reader.Changed, proof.Inconsistent},
		"reserved": {func(round int, m *mad.MAD) bool { m.Data()[8] ^= byte(round); return true }, reader.Fine, proof.WasRead},
	} {
		for _, node := range []string{"h1", "leaf1"} {
			t.Run(name+" "+node, func(t *testing.T) {
				t.Parallel()
				b := newBed(t)
				clean := b.verdict(b.read())
				spoilt := 0
				b.change = func(round int, m *mad.MAD) bool {
					if !b.to(m, node, mad.AttrSLtoVLMappingTable) {
						return true
					}
					spoilt++
					return c.spoil(round, m)
				}
				found := b.read()
				if spoilt == 0 {
					t.Fatal("no such answer came")
				}
				tables := b.lanesOf(found, node)
				for num, l := range tables {
					if l.Table.How != c.how {
						t.Errorf("port %d was read as %v, want %v", num, l.Table.How, c.how)
					}
				}
				wrong := func(u reader.Unknown) bool { return u.What != "SLtoVL table" || u.Cause != c.cause || u.Matters() }
				want := len(tables)
				if c.cause == reader.Fine {
					want = 0
				}
				if len(found.Unknown) != want || len(tables) == 0 || slices.ContainsFunc(found.Unknown, wrong) {
					t.Errorf("of %d tables is unknown: %v", len(tables), found.Unknown)
				}
				if v := b.verdict(found); v != clean {
					t.Errorf("the verdict is %v, and was %v", v, clean)
				}
			})
		}
	}
}

// TestUnreadThatMatters: a P_Key table that was not read is one on which a packet may depend.
func TestUnreadThatMatters(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.change = func(_ int, m *mad.MAD) bool { return !b.to(m, "h1", mad.AttrPKeyTable) }
	found := b.read()
	if len(found.Unknown) != 1 || !found.Unknown[0].Matters() {
		t.Errorf("unknown is %v", found.Unknown)
	}
}

// TestOneLane: a port with one data lane is not asked for a table that it need not have; the next port of a switch is asked for that of packets
// from it all the same.
func TestOneLane(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	at := b.place("h1")
	leaf := b.node(at.Switch)
	b.change = func(_ int, m *mad.MAD) bool {
		if b.to(m, "h2", mad.AttrPortInfo) || b.to(m, leaf, mad.AttrPortInfo) && m.Mod() == mad.PortInfoMod(at.Port, 0) {
			alter(t, m.Data(), func(p *mad.PortInfo) { p.VLCap = 1 })
		}
		if b.to(m, "h2", mad.AttrSLtoVLMappingTable) {
			t.Error("h2 was asked")
		}
		return true
	}
	found := b.read()
	of := b.lanesOf(found, leaf)
	if _, ok := of[at.Port]; ok || of[at.Port+1].In != at.Port || len(b.lanesOf(found, "h2")) != 0 || len(b.lanesOf(found, "h1")) != 1 || len(found.Unknown) != 0 {
		t.Errorf("tables of %s: %v, unknown %v", leaf, of, found.Unknown)
	}
}

// TestLanesAfterAReading reads again the tables that were touched, or whose ingress port is another one now, and takes the others over.
func TestLanesAfterAReading(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent   int
		change func(b *bed, leaf string, num ib.PortNum) []reader.Value
	}{
		"adapter": {2, func(b *bed, _ string, _ ib.PortNum) []reader.Value {
			b.write("h1", mad.AttrSLtoVLMappingTable, 0, func(data []byte) { data[0] ^= 0x11 })
			return []reader.Value{{Node: b.guid("h1"), Port: 1, Attr: mad.AttrSLtoVLMappingTable}}
		}},
		"switch": {2, func(b *bed, leaf string, num ib.PortNum) []reader.Value {
			b.write(leaf, mad.AttrSLtoVLMappingTable, mad.SLtoVLMod(num, num+1), func(data []byte) { data[0] ^= 0x11 })
			return []reader.Value{{Node: b.guid(leaf), Port: num + 1, Attr: mad.AttrSLtoVLMappingTable}}
		}},
		"port that went down": {4, func(b *bed, leaf string, num ib.PortNum) []reader.Value {
			b.must(b.fabric.Unlink(leaf, num))
			return b.port(leaf, num)
		}},
		"host at another port": {0, func(b *bed, leaf string, num ib.PortNum) []reader.Value {
			b.must(b.fabric.Swap(sim.Endpoint{Node: "h1", Port: 1}, sim.Endpoint{Node: "h4", Port: 1}))
			b.write("h1", mad.AttrSLtoVLMappingTable, 0, func(data []byte) { data[0] ^= 0x11 })
			other := b.place("h4")
			return append(b.port(leaf, num), b.port(b.node(other.Switch), other.Port)...)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			was := b.read()
			at := b.place("h1")
			touched := c.change(b, b.node(at.Switch), at.Port)
			now := b.after(was, touched...)
			b.same(now, b.read())
			if c.sent != 0 && now.Sent != own+c.sent {
				t.Errorf("%d requests were sent besides the own %d, want %d", now.Sent-own, own, c.sent)
			}
			if c.sent == 2 && len(b.after(was).Lanes) != len(was.Lanes) {
				t.Error("where nothing was touched, tables are missing")
			}
		})
	}
	b := newBed(t)
	was := b.read()
	b.write("h1", mad.AttrSLtoVLMappingTable, 0, func(data []byte) { data[0] ^= 0x11 })
	if readertest.Facts(b.after(was)) != readertest.Facts(was) || readertest.Facts(b.read()) == readertest.Facts(was) {
		t.Error("a table that was not touched was read, or one that was written cannot be")
	}
}

// TestUnreadLanesAfterAReading: a table that a device refused is not asked for after each change, but if it was touched. One that was not read
// for another cause is.
func TestUnreadLanesAfterAReading(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(round int, m *mad.MAD) bool
		cause reader.Cause
		again bool
	}{
		"silent":   {func(int, *mad.MAD) bool { return false }, reader.Silent, true},
		"refused":  {func(_ int, m *mad.MAD) bool { m.SetStatus(mad.StatusInvalidField); return true }, reader.Refused, false},
		"nonsense": {func(_ int, m *mad.MAD) bool { m.SetMod(m.Mod() ^ 1<<9); return true }, reader.Nonsense, true},
		"changed":  {func(round int, m *mad.MAD) bool { m.Data()[3] ^= byte(round); return true }, reader.Changed, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			spoilt := 0
			b.change = func(round int, m *mad.MAD) bool {
				if !b.to(m, "leaf1", mad.AttrSLtoVLMappingTable) {
					return true
				}
				spoilt++
				return c.spoil(round, m)
			}
			was := b.read()
			before := spoilt
			now := b.after(was)
			if (spoilt > before) != c.again || before == 0 {
				t.Errorf("%d answers were spoilt, and %d more after a reading in which nothing was touched", before, spoilt-before)
			}
			b.same(now, was)
			for i := range now.Unknown {
				if now.Unknown[i] != was.Unknown[i] || now.Unknown[i].Cause != c.cause {
					t.Errorf("unknown is %v, and was %v", now.Unknown[i], was.Unknown[i])
				}
			}
			if b.same(b.after(now), was); c.again {
				return
			}
			b.change = nil
			var touched []reader.Value
			for num := range b.lanesOf(was, "leaf1") {
				touched = append(touched, reader.Value{Node: b.guid("leaf1"), Port: num, Attr: mad.AttrSLtoVLMappingTable})
			}
			if healed := b.after(now, touched...); len(healed.Unknown) != 0 || len(touched) == 0 {
				t.Errorf("%d tables were touched, and of the devices, which answer now, is unknown: %v", len(touched), healed.Unknown)
			}
		})
	}
}
