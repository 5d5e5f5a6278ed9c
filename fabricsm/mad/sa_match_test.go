package mad

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"portcullis/fabricsm/ib"
)

// slowMatch compares by the published list, bit after bit.
func slowMatch(list []Component, leave, mask ComponentMask, query, record []byte) bool {
	for i, c := range list {
		if c.Reserved || mask&^leave&(1<<i) == 0 {
			continue
		}
		for b := c.Bit; b < c.Bit+c.Width; b++ {
			if (query[b/8]^record[b/8])>>(7-b%8)&1 != 0 {
				return false
			}
		}
	}
	return true
}

// left are the components that MatchRecord leaves to others.
var left = map[AttrID]ComponentMask{
	AttrPortInfoRecord:  PortInfoComponentOptions,
	AttrPathRecord:      0b111111 << 16,
	AttrMCMemberRecord:  0b110000 | 0b1111<<8,
	AttrMultiPathRecord: 0b111111 << 10,
}

// TestMatchRecordEveryBit: MatchRecord agrees with a slow reader of the published lists: each bit of a record that differs
// alone decides under its own component and under no other.
func TestMatchRecordEveryBit(t *testing.T) {
	lists := readComponents(t)
	rnd := rand.New(rand.NewPCG(11, 12))
	for _, a := range recordAttrs {
		l := saLayout(a)
		list := lists[l.Name()]
		record := make([]byte, l.Size())
		for i := range record {
			record[i] = byte(rnd.Uint32())
		}
		query := bytes.Clone(record)
		for bit := range 8 * l.Size() {
			query[bit/8] ^= 0x80 >> (bit % 8)
			for i := range 64 {
				mask := ComponentMask(1) << i
				if got, want := MatchRecord(a, mask, query, record), slowMatch(list, left[a], mask, query, record); got != want {
					t.Fatalf("%s: bit %d differs, component %d: match %v", l.Name(), bit, i, got)
				}
				if got, want := MatchRecord(a, ^mask, query, record), slowMatch(list, left[a], ^mask, query, record); got != want {
					t.Fatalf("%s: bit %d differs, all but component %d: match %v", l.Name(), bit, i, got)
				}
			}
			query[bit/8] ^= 0x80 >> (bit % 8)
		}
	}
}

// TestMatchRecordPrefixes: a query or record that ends early matches nothing, whatever is asked.
func TestMatchRecordPrefixes(t *testing.T) {
	for _, a := range recordAttrs {
		size := saLayout(a).Size()
		whole := make([]byte, RecordSize(a))
		for n := range size {
			for _, mask := range []ComponentMask{0, 1, ^ComponentMask(0)} {
				if MatchRecord(a, mask, whole, whole[:n]) || MatchRecord(a, mask, whole[:n], whole) ||
					MatchSelectors(a, mask, whole, whole[:n]) || MatchSelectors(a, mask, whole[:n], whole) {
					t.Errorf("attribute %#x: a match with %d of %d bytes", uint16(a), n, size)
				}
			}
		}
		if !MatchRecord(a, ^ComponentMask(0), whole, whole[:size]) || !MatchSelectors(a, 0, whole, whole[:size]) {
			t.Errorf("attribute %#x: whole records do not match", uint16(a))
		}
	}
	p := make([]byte, 200)
	for _, a := range []AttrID{AttrInformInfo, AttrClassPortInfo, 0x7777} {
		if MatchRecord(a, 0, p, p) || MatchSelectors(a, 0, p, p) {
			t.Errorf("attribute %#x has no components but matches", uint16(a))
		}
	}
}

func encoded[T any](t testing.TB, v T) []byte {
	t.Helper()
	p := make([]byte, LayoutOf[T]().Size())
	if err := Encode(p, &v); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMatchSelectors(t *testing.T) {
	group := encoded(t, MCMemberRecord{MTU: ib.MTU2048, Rate: ib.Rate10, PacketLifeTime: 18, MTUSelector: 2, RateSelector: 2, PacketLifeTimeSelector: 2})
	path := encoded(t, PathRecord{MTU: ib.MTU2048, Rate: ib.Rate10, PacketLifeTime: 18, MTUSelector: 2, RateSelector: 2, PacketLifeTimeSelector: 2})
	tests := []struct {
		name  string
		group MCMemberRecord
		mask  ComponentMask
		want  bool
	}{
		{"nothing asked", MCMemberRecord{MTUSelector: SelectGreater, MTU: ib.MTU4096}, 0, true},
		{"value without selector", MCMemberRecord{MTU: ib.MTU4096}, MCMemberComponentMTU | MCMemberComponentRate | MCMemberComponentPacketLifeTime, true},
		{"selector without value", MCMemberRecord{MTU: ib.MTU4096}, MCMemberComponentMTUSelector, true},
		{"MTU greater", MCMemberRecord{MTU: ib.MTU1024}, MCMemberComponentMTUSelector | MCMemberComponentMTU, true},
		{"MTU not greater", MCMemberRecord{MTU: ib.MTU2048}, MCMemberComponentMTUSelector | MCMemberComponentMTU, false},
		{"rate less by speed, not by code", MCMemberRecord{RateSelector: SelectLess, Rate: ib.Rate5}, MCMemberComponentRateSelector | MCMemberComponentRate, false},
		{"rate greater by speed", MCMemberRecord{RateSelector: SelectGreater, Rate: ib.Rate5}, MCMemberComponentRateSelector | MCMemberComponentRate, true},
		{"lifetime exactly", MCMemberRecord{PacketLifeTimeSelector: SelectExactly, PacketLifeTime: 18}, MCMemberComponentPacketLifeTimeSelector | MCMemberComponentPacketLifeTime, true},
		{"lifetime not exactly", MCMemberRecord{PacketLifeTimeSelector: SelectExactly, PacketLifeTime: 17}, MCMemberComponentPacketLifeTimeSelector | MCMemberComponentPacketLifeTime, false},
		{"best of all", MCMemberRecord{MTUSelector: SelectBest, RateSelector: SelectBest, PacketLifeTimeSelector: SelectBest}, 0b110000 | 0b1111<<8, true},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			if got := MatchSelectors(AttrMCMemberRecord, c.mask, encoded(t, c.group), group); got != c.want {
				t.Errorf("group matches: %v", got)
			}
			g := c.group
			query := encoded(t, PathRecord{
				MTUSelector: g.MTUSelector, MTU: g.MTU, RateSelector: g.RateSelector, Rate: g.Rate,
				PacketLifeTimeSelector: g.PacketLifeTimeSelector, PacketLifeTime: g.PacketLifeTime,
			})
			mask := c.mask>>4&3<<16 | c.mask>>8&0xF<<18
			if got := MatchSelectors(AttrPathRecord, mask, query, path); got != c.want {
				t.Errorf("path matches: %v", got)
			}
		})
	}
}

func TestMatchPortInfo(t *testing.T) {
	record := encoded(t, PortInfoRecord{EndportLID: 5, PortInfo: PortInfo{CapabilityMask: IsSM | IsTrapSupported, CapabilityMask2: 6}})
	const byBits = PortInfoMatchBits
	tests := []struct {
		name  string
		mod   uint32
		mask  ComponentMask
		query PortInfoRecord
		want  bool
	}{
		{"equal", 0, PortInfoComponentCapabilityMask, PortInfoRecord{PortInfo: PortInfo{CapabilityMask: IsSM | IsTrapSupported}}, true},
		{"some bits, not equal", 0, PortInfoComponentCapabilityMask, PortInfoRecord{PortInfo: PortInfo{CapabilityMask: IsSM}}, false},
		{"some bits", byBits, PortInfoComponentCapabilityMask, PortInfoRecord{PortInfo: PortInfo{CapabilityMask: IsSM}}, true},
		{"a bit too many", byBits, PortInfoComponentCapabilityMask, PortInfoRecord{PortInfo: PortInfo{CapabilityMask: IsSM | IsNoticeSupported}}, false},
		{"no bits at all", byBits, PortInfoComponentCapabilityMask, PortInfoRecord{}, true},
		{"not asked", byBits, PortInfoComponentEndportLID, PortInfoRecord{EndportLID: 5, PortInfo: PortInfo{CapabilityMask: IsNoticeSupported}}, true},
		{"some bits of the second mask", byBits, PortInfoComponentCapabilityMask2, PortInfoRecord{PortInfo: PortInfo{CapabilityMask2: 4}}, true},
		{"a wrong bit of the second mask", byBits, PortInfoComponentCapabilityMask2, PortInfoRecord{PortInfo: PortInfo{CapabilityMask2: 5}}, false},
		{"second mask not equal", 0, PortInfoComponentCapabilityMask2, PortInfoRecord{PortInfo: PortInfo{CapabilityMask2: 4}}, false},
		{"others count too", byBits, PortInfoComponentCapabilityMask | PortInfoComponentEndportLID, PortInfoRecord{EndportLID: 6, PortInfo: PortInfo{CapabilityMask: IsSM}}, false},
		{"options are no condition", 0, PortInfoComponentOptions, PortInfoRecord{Options: PortInfoRecordFull}, true},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			query := encoded(t, c.query)
			if got := MatchPortInfo(c.mod, c.mask, query, record); got != c.want {
				t.Errorf("match %v", got)
			}
			for n := range query {
				if MatchPortInfo(c.mod, c.mask, query[:n], record) || MatchPortInfo(c.mod, c.mask, query, record[:n]) {
					t.Fatalf("a match with %d bytes", n)
				}
			}
		})
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	p, q := make([]byte, SADataSize), make([]byte, SADataSize)
	for _, a := range recordAttrs {
		if n := testing.AllocsPerRun(100, func() {
			if !MatchRecord(a, ^ComponentMask(0), p, q) || !MatchSelectors(a, 0, p, q) || !MatchPortInfo(PortInfoMatchBits, ^ComponentMask(0), p, q) {
				t.Error("no match")
			}
		}); n != 0 {
			t.Errorf("attribute %#x: %v allocations", uint16(a), n)
		}
	}
}

// FuzzMatchRecord compares with the slow reader, for any bytes and masks.
func FuzzMatchRecord(f *testing.F) {
	f.Add(uint8(12), uint64(PathComponentDGID|PathComponentSGID), make([]byte, 64), make([]byte, 64))
	f.Add(uint8(1), ^uint64(0), make([]byte, 68), make([]byte, 72))
	f.Add(uint8(8), uint64(15), []byte{0, 1, 2, 3, 0, 4}, []byte{0, 1, 2, 3, 0, 4})
	f.Fuzz(func(t *testing.T, kind uint8, mask uint64, query, record []byte) {
		a := recordAttrs[int(kind)%len(recordAttrs)]
		size := saLayout(a).Size()
		got := MatchRecord(a, ComponentMask(mask), query, record)
		want := len(query) >= size && len(record) >= size && slowMatch(Components(a), left[a], ComponentMask(mask), query, record)
		if got != want {
			t.Fatalf("attribute %#x mask %#x: match %v, want %v", uint16(a), mask, got, want)
		}
		MatchSelectors(a, ComponentMask(mask), query, record)
		if MatchPortInfo(0, ComponentMask(mask), query, record) != MatchRecord(AttrPortInfoRecord, ComponentMask(mask), query, record) {
			t.Fatal("without its modifier bit a question for PortInfo is like others")
		}
	})
}

func BenchmarkMatchRecord(b *testing.B) {
	p, q := make([]byte, SADataSize), make([]byte, SADataSize)
	b.ReportAllocs()
	for b.Loop() {
		if !MatchRecord(AttrPathRecord, PathComponentDGID|PathComponentSGID|PathComponentPKey|PathComponentSL, p, q) {
			b.Fatal("no match")
		}
	}
}
