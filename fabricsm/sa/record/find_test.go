package record_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/record"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// knows reports whether a requester may know of a node, by the P_Keys that the simulated devices hold: those that host and
// switch port both have, and never two limited ones.
func (b *bed) knows(asker, node string) bool {
	keys := func(name string) (held []ib.PKey) {
		n := b.List.Find(name)
		if n.Type == ib.NodeSwitch {
			return b.Fabric.PKeys(name, 0)
		}
		before := b.Fabric.PKeys(n.Ports[1].Peer, n.Ports[1].PeerPort)
		for _, k := range b.Fabric.PKeys(name, 1) {
			if name == "sm" || slices.Contains(before, k) {
				held = append(held, k)
			}
		}
		return held
	}
	for _, x := range keys(asker) {
		for _, y := range keys(node) {
			if x.Base() == y.Base() && (x.IsFull() || y.IsFull()) {
				return true
			}
		}
	}
	return asker == node
}

// TestAskersSeeTheirPartition: an untrusted requester gets exactly the records of the ports that it may know.
func TestAskersSeeTheirPartition(t *testing.T) {
	b := newBed(t, sm.Config{QoS: odd(t)})
	for _, asker := range []string{"sm", "h1", "h3", "h4", "h5", "h6"} {
		seen := 0
		for _, attr := range attrs {
			if attr == mad.AttrPKeyTableRecord {
				continue
			}
			got, _ := b.ask(b.asker(asker, false), record.Query{Attr: attr})
			var want []truth
			for _, r := range b.truth(t, attr) {
				if !slices.ContainsFunc(r.of, func(node string) bool { return !b.knows(asker, node) }) {
					want = append(want, r)
				}
			}
			compare(t, attr, got, texts(want))
			seen += len(want)
		}
		t.Logf("%s sees %d records", asker, seen)
	}
	for _, pair := range []struct {
		asker, node string
		want        bool
	}{
		{"sm", "leaf1", true},
		{"h1", "h2", true},
		{"h1", "h3", true},
		{"h3", "h1", true},
		{"h3", "h4", false},
		{"h5", "h1", false},
		{"h6", "h6", true},
		{"h6", "sm", true},
		{"h6", "leaf1", false},
	} {
		if b.knows(pair.asker, pair.node) != pair.want {
			t.Errorf("this fabric is not what it should be: %s knows of %s: %v", pair.asker, pair.node, !pair.want)
		}
	}
	nobody := &portindex.Asker{Port: -1}
	for _, attr := range attrs {
		if got, _ := b.ask(nobody, record.Query{Attr: attr}); len(got) > 0 {
			t.Errorf("%v: nobody gets %d records", attr, len(got))
		}
	}
}

// TestKeysAreSecret: tables of P_Keys are only for trusted requesters, and no requester gets M_Keys or the SM_Key.
func TestKeysAreSecret(t *testing.T) {
	b := newBed(t, sm.Config{SMKey: ib.NewSMKey(0x1122334455667788)})
	if got, status := b.ask(b.asker("sm", false), record.Query{Attr: mad.AttrPKeyTableRecord}); len(got) != 0 || status != mad.StatusInvalidRequest {
		t.Errorf("untrusted: %d P_Key tables, %v", len(got), status)
	}
	for attr, key := range map[mad.AttrID]int{mad.AttrPortInfoRecord: 4, mad.AttrSMInfoRecord: 12} {
		got, _ := b.ask(b.asker("sm", true), record.Query{Attr: attr})
		if len(got) == 0 {
			t.Errorf("no %v", attr)
		}
		for _, r := range got {
			if !bytes.Equal(r[key:key+8], make([]byte, 8)) {
				t.Errorf("%v with a key: %x", attr, r)
			}
		}
	}
}

// matchesSlowly compares a record with a query component by component.
func matchesSlowly(b *bed, q *record.Query, r []byte) bool {
	bit := func(p []byte, i int) byte { return p[i/8] >> (7 - i%8) & 1 }
	for n, c := range mad.Components(q.Attr) {
		switch {
		case c.Reserved || q.Mask&(1<<n) == 0 || c.Name == "Options":
			continue
		case strings.HasSuffix(c.Name, "putPortNum") && b.book.View.Fabric.NodeOf(b.book.ByLID(ib.LID(binary.BigEndian.Uint16(r))).Port).Type != ib.NodeSwitch:
			continue // the LID determines it
		case n == 0 || q.Attr == mad.AttrLinkRecord && c.Name == "ToLID":
			owner := b.book.ByLID(ib.LID(binary.BigEndian.Uint16(q.Data[c.Bit/8:])))
			if owner == nil || owner != b.book.ByLID(ib.LID(binary.BigEndian.Uint16(r[c.Bit/8:]))) {
				return false
			}
			continue
		}
		for i := c.Bit; i < c.Bit+c.Width; i++ {
			x, y := bit(q.Data[:], i), bit(r, i)
			bits := q.Mod>>31 == 1 && (c.Name == "CapabilityMask" || c.Name == "CapabilityMask2")
			if x != y && !(bits && x == 0) {
				return false
			}
		}
	}
	return true
}

// standard has records be as the standard has them: BlockNum of P_KeyTableRecords is
// answered with the lower byte first.
func standard(attr mad.AttrID, records [][]byte) {
	if attr == mad.AttrPKeyTableRecord {
		for _, r := range records {
			r[2], r[3] = r[3], r[2]
		}
	}
}

// TestMasks asks for records by random components of existing records, and compares with a full search.
func TestMasks(t *testing.T) {
	b := newBed(t, sm.Config{QoS: odd(t), LMC: 1})
	rng := rand.New(rand.NewPCG(1, 2))
	a := b.asker("sm", true)
	for _, attr := range attrs {
		// With the full form, the match uses the values that the answer shows.
		full := record.Query{Attr: attr}
		if attr == mad.AttrPortInfoRecord {
			full.Mask, full.Data[3] = mad.PortInfoComponentOptions, 0x80
		}
		all, _ := b.ask(a, full)
		standard(attr, all)
		if len(all) == 0 {
			t.Fatalf("no %v", attr)
		}
		components, some := len(mad.Components(attr)), 0
		for range 400 {
			q := full
			copy(q.Data[:], all[rng.IntN(len(all))])
			if attr == mad.AttrPortInfoRecord {
				q.Data[3], q.Mod = 0x80, rng.Uint32()&(1<<31)
			}
			for range rng.IntN(4) {
				q.Mask |= 1 << rng.IntN(components+1)
			}
			switch rng.IntN(6) {
			case 0:
				q.Data[rng.IntN(mad.RecordSize(attr))] ^= 1 << rng.IntN(8)
			case 1:
				q.Data[1] |= 1 // with LMC 1, another LID of the same port
			}
			var want [][]byte
			for _, r := range all {
				if matchesSlowly(b, &q, r) {
					want = append(want, r)
				}
			}
			got, _ := b.ask(a, q)
			standard(attr, got)
			slices.SortFunc(got, bytes.Compare)
			slices.SortFunc(want, bytes.Compare)
			if !slices.EqualFunc(got, want, bytes.Equal) {
				t.Fatalf("%v by %v, modifier %#x: %d records, want %d\n%x", attr, q.Mask.Names(attr), q.Mod, len(got), len(want), q.Data[:mad.RecordSize(attr)])
			}
			if some += len(want); len(want) == 1 || len(want) == 0 {
				b.judgeOne(t, a, q, want)
			}
		}
		if some < 200 {
			t.Errorf("%v: only %d records were found", attr, some)
		}
	}
}

// judgeOne compares the answer to a Get.
func (b *bed) judgeOne(t *testing.T, a *portindex.Asker, q record.Query, want [][]byte) {
	t.Helper()
	q.Method = mad.MethodGet
	r := make([]byte, mad.RecordSize(q.Attr))
	n, status := record.One(b.book, a, &q, r)
	standard(q.Attr, [][]byte{r})
	switch {
	case len(want) == 0 && (n != 0 || status != mad.StatusNoRecords):
		t.Fatalf("Get of nothing: %d bytes, %v", n, status)
	case len(want) == 1 && (status != mad.StatusOK || !bytes.Equal(r[:n], want[0])):
		t.Fatalf("Get of one: %v, %x, want %x", status, r[:n], want[0])
	}
}

func TestGetOfMany(t *testing.T) {
	b := newBed(t, sm.Config{})
	r := make([]byte, 256)
	if n, status := record.One(b.book, b.asker("sm", true), &record.Query{Attr: mad.AttrNodeRecord, Method: mad.MethodGet}, r); n != 0 || status != mad.StatusTooManyRecords {
		t.Errorf("Get of all nodes: %d bytes, %v", n, status)
	}
	for _, q := range []record.Query{
		{Attr: mad.AttrNodeRecord, Method: mad.MethodSet},
		{Attr: mad.AttrNodeRecord, Method: mad.MethodDelete},
		{Attr: mad.AttrRandomForwardingRecord, Method: mad.MethodGet},
		{Attr: mad.AttrPathRecord, Method: mad.MethodGet},
	} {
		if n, status := record.One(b.book, b.asker("sm", true), &q, r); n != 0 || status != mad.StatusUnsupportedMethodAttr {
			t.Errorf("%v of %v: %d bytes, %v", q.Method, q.Attr, n, status)
		}
	}
	var c record.Cursor
	if n, ok := c.Next(r); n != 0 || ok || c.RecordSize() != 0 {
		t.Error("a cursor of nothing has records")
	}
}

// TestSpeedsForOldClients: PortInfo of a link at extended speed also shows QDR, except for clients that request the exact
// value.
func TestSpeedsForOldClients(t *testing.T) {
	b := newBed(t, sm.Config{}, func(s *testbed.Stage) {
		s.OnAnswer = func(p *transport.Packet) bool { // as devices do that have no QDR
			var pi mad.PortInfo
			if p.MAD.Attr() == mad.AttrPortInfo && mad.Decode(p.MAD.Data(), &pi) == nil {
				pi.LinkSpeedSupported, pi.LinkSpeedActive, pi.LinkSpeedEnabled = ib.SpeedSDR, 0, ib.SpeedSDR
				if err := mad.Encode(p.MAD.Data(), &pi); err != nil {
					t.Error(err)
				}
			}
			return false
		}
	})
	raw := b.Fabric.PortInfo("h1", 1)
	if raw.LinkSpeedExtActive == 0 {
		t.Fatal("h1 is at no extended speed")
	}
	raw.LinkSpeedSupported, raw.LinkSpeedActive, raw.LinkSpeedEnabled = ib.SpeedSDR, 0, ib.SpeedSDR
	for name, tt := range map[string]struct {
		mask    mad.ComponentMask
		options byte
		full    bool
	}{
		"nothing said":          {0, 0, false},
		"options not in mask":   {0, 0x80, false},
		"other options":         {mad.PortInfoComponentOptions, 0x7F, false},
		"as it is":              {mad.PortInfoComponentOptions, 0x80, true},
		"as it is, and unknown": {mad.PortInfoComponentOptions, 0xFF, true},
	} {
		t.Run(name, func(t *testing.T) {
			q := record.Query{Attr: mad.AttrPortInfoRecord, Mask: tt.mask | mad.PortInfoComponentEndportLID}
			binary.BigEndian.PutUint16(q.Data[:], uint16(raw.LID))
			q.Data[3] = tt.options
			got, _ := b.ask(b.asker("sm", true), q)
			if len(got) != 1 {
				t.Fatalf("%d records", len(got))
			}
			var pi mad.PortInfoRecord
			if err := mad.Decode(got[0], &pi); err != nil {
				t.Fatal(err)
			}
			want := raw
			if !tt.full {
				want.LinkSpeedActive |= ib.SpeedQDR
				want.LinkSpeedSupported |= ib.SpeedQDR
				want.LinkSpeedEnabled |= ib.SpeedQDR
			}
			if pi.LinkSpeedActive != want.LinkSpeedActive || pi.LinkSpeedSupported != want.LinkSpeedSupported || pi.LinkSpeedEnabled != want.LinkSpeedEnabled {
				t.Errorf("speeds %v %v %v, want %v %v %v", pi.LinkSpeedActive, pi.LinkSpeedSupported, pi.LinkSpeedEnabled, want.LinkSpeedActive, want.LinkSpeedSupported, want.LinkSpeedEnabled)
			}
			if (pi.Options == mad.PortInfoRecordFull) != tt.full {
				t.Errorf("options %#x", pi.Options)
			}
		})
	}
}

// TestCost: the cost of a query about one port does not grow with the fabric, and a record is made without allocation.
func TestCost(t *testing.T) {
	b := newBed(t, sm.Config{QoS: odd(t)})
	a := b.asker("sm", true)
	for _, attr := range attrs {
		q := record.Query{Attr: attr, Method: mad.MethodGetTable}
		r := make([]byte, mad.RecordSize(attr))
		c, _ := record.Find(b.book, a, &q)
		n, _ := c.Next(r)
		if n == 0 {
			t.Fatalf("no %v", attr)
		}
		if allocs := testing.AllocsPerRun(20, func() {
			c, _ := record.Find(b.book, a, &q)
			for {
				if _, ok := c.Next(r); !ok {
					break
				}
			}
		}); allocs != 0 {
			t.Errorf("%v: %v allocations", attr, allocs)
		}
		q.Mask = 1
		copy(q.Data[:], r)
		c, _ = record.Find(b.book, a, &q)
		found := 0
		for {
			if _, ok := c.Next(r); !ok {
				break
			}
			found++
		}
		if limit := 3*found + 20; c.Steps() > limit {
			t.Errorf("%v of one LID: %d steps for %d records", attr, c.Steps(), found)
		}
	}
	// A cursor that is stepped returns the same in bounded pieces.
	q := record.Query{Attr: mad.AttrNodeRecord, Method: mad.MethodGetTable, Mask: mad.NodeComponentNodeDescription}
	copy(q.Data[44:], "h7")
	c, _ := record.Find(b.book, a, &q)
	r := make([]byte, c.RecordSize())
	found, turns := 0, 0
	for done := false; !done; turns++ {
		var n int
		before := c.Steps()
		n, done = c.Step(r, 2)
		if n > 0 {
			found++
		}
		if c.Steps()-before > 2 {
			t.Fatalf("%d steps at once", c.Steps()-before)
		}
	}
	if found != 1 || turns < len(b.List.Nodes)/2 {
		t.Errorf("%d nodes called h7 in %d turns", found, turns)
	}
}

// FuzzFind: every query has a finite answer, whose records are true and visible to the requester.
func FuzzFind(f *testing.F) {
	b := newBed(f, sm.Config{QoS: odd(f), LMC: 1})
	type who struct {
		asker *portindex.Asker
		may   map[string]bool
	}
	var askers []who
	for _, node := range []string{"sm", "h1", "h6"} {
		for _, trusted := range []bool{true, false} {
			w := who{b.asker(node, trusted), make(map[string]bool)}
			for _, attr := range attrs {
				q := record.Query{Attr: attr, Mask: mad.PortInfoComponentOptions}
				for _, options := range []byte{0, 0x80} {
					q.Data[3] = options
					if attr != mad.AttrPortInfoRecord {
						q.Mask = 0
					}
					got, _ := b.ask(w.asker, q)
					for _, r := range got {
						w.may[fmt.Sprintf("%d %x", attr, r)] = true
					}
				}
			}
			askers = append(askers, w)
		}
	}
	for i, attr := range attrs {
		f.Add(uint8(i), uint16(attr), uint8(mad.MethodGetTable), uint32(0), uint64(0), []byte{})
		f.Add(uint8(i+1), uint16(attr), uint8(mad.MethodGetTable), uint32(1<<31), ^uint64(0), bytes.Repeat([]byte{0xFF}, 200))
		f.Add(uint8(i), uint16(attr), uint8(mad.MethodGet), uint32(0), uint64(1), []byte{0, 3})
		f.Add(uint8(i), uint16(attr), uint8(mad.MethodGet), uint32(0), uint64(0xF), []byte{0, 3, 0, 1, 0, 4})
	}
	f.Fuzz(func(t *testing.T, asker uint8, attr uint16, method uint8, mod uint32, mask uint64, data []byte) {
		w := askers[int(asker)%len(askers)]
		q := record.Query{Attr: mad.AttrID(attr), Method: mad.Method(method), Mod: mod, Mask: mad.ComponentMask(mask)}
		copy(q.Data[:], data)
		c, status := record.Find(b.book, w.asker, &q)
		var r [256]byte
		for found := 0; ; found++ {
			n, ok := c.Next(r[:])
			if !ok {
				break
			}
			if status != mad.StatusOK || found > 10_000 || c.Steps() > 100_000 {
				t.Fatalf("%v, %d records, %d steps", status, found, c.Steps())
			}
			if !w.may[fmt.Sprintf("%d %x", q.Attr, r[:n])] {
				t.Fatalf("a record that is not the asker's to see: %x", r[:n])
			}
		}
		if n, ok := c.Next(r[:]); ok || n != 0 {
			t.Fatal("records after the end")
		}
	})
}

// TestOtherSMs: ours comes first, then the others as they describe themselves, without
// their keys; by LID, GUID and state.
func TestOtherSMs(t *testing.T) {
	b := newBed(t, sm.Config{SMKey: ib.NewSMKey(7)})
	for i, node := range []string{"h2", "h5"} {
		err := b.Fabric.RogueSM(node, &mad.SMInfo{
			GUID: b.List.Find(node).PortGUID(1), SMKey: ib.NewSMKey(7), ActCount: 5, Priority: uint8(i), SMState: ib.SMStandby,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	b.Crash()
	b.Start()
	b.Want(b.Intent())
	b.settle(t)
	a := b.asker("sm", true)
	guids := func(q record.Query) (list []string) {
		q.Attr = mad.AttrSMInfoRecord
		got, _ := b.ask(a, q)
		for _, r := range got {
			var si mad.SMInfoRecord
			if err := mad.Decode(r, &si); err != nil {
				t.Fatal(err)
			}
			if si.SMKey != (ib.SMKey{}) || b.book.ByLID(si.LID).GUID != si.GUID {
				t.Errorf("%x", r)
			}
			list = append(list, b.View().Fabric.NodeOf(b.book.ByLID(si.LID).Port).Description)
		}
		return list
	}
	standby := record.Query{Mask: mad.SMInfoComponentSMState}
	standby.Data[24] = byte(ib.SMStandby)
	h5 := record.Query{Mask: 1}
	binary.BigEndian.PutUint16(h5.Data[:], uint16(b.book.ByGUID(b.List.Find("h5").PortGUID(1)).LID))
	for _, tt := range []struct {
		q    record.Query
		want []string
	}{
		{record.Query{}, []string{"sm", "h5", "h2"}},
		{standby, []string{"h5", "h2"}},
		{h5, []string{"h5"}},
	} {
		if got := guids(tt.q); !slices.Equal(got, tt.want) {
			t.Errorf("by %v: %v, want %v", tt.q.Mask.Names(mad.AttrSMInfoRecord), got, tt.want)
		}
	}
	if got, _ := b.ask(b.asker("h1", false), record.Query{Attr: mad.AttrSMInfoRecord}); len(got) != 2 {
		t.Errorf("h1 knows of %d Subnet Managers, want the one and that of its partition", len(got))
	}
}

// TestCursorsKeepTheirBook: a change of the fabric does not change a table that is being sent.
func TestCursorsKeepTheirBook(t *testing.T) {
	b := newBed(t, sm.Config{})
	a := b.asker("sm", true)
	for _, attr := range attrs {
		want, _ := b.ask(a, record.Query{Attr: attr})
		c, _ := record.Find(b.book, a, &record.Query{Attr: attr, Method: mad.MethodGetTable})
		for i, r := range want {
			if i == len(want)/2 {
				if err := b.Fabric.Bounce("h5", 1); err != nil {
					t.Fatal(err)
				}
				if err := b.Fabric.Reboot("spine1"); err != nil {
					t.Fatal(err)
				}
				b.Run(2 * time.Second)
				b.settle(t)
			}
			got := make([]byte, c.RecordSize())
			if n, ok := c.Next(got); !ok || !bytes.Equal(got[:n], r) {
				t.Fatalf("%v, record %d: %x, want %x", attr, i, got, r)
			}
		}
		if _, ok := c.Next(make([]byte, c.RecordSize())); ok {
			t.Errorf("%v: more records than there were", attr)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	bed := newBed(b, sm.Config{QoS: odd(b)})
	a := bed.asker("sm", true)
	for _, attr := range attrs {
		one := record.Query{Attr: attr, Method: mad.MethodGetTable, Mask: 1}
		all, _ := bed.ask(a, record.Query{Attr: attr})
		copy(one.Data[:], all[len(all)/2])
		for _, q := range []record.Query{{Attr: attr, Method: mad.MethodGetTable}, one} {
			b.Run(fmt.Sprintf("%#04x by %v", uint16(attr), q.Mask.Names(attr)), func(b *testing.B) {
				r := make([]byte, mad.RecordSize(attr))
				records := 0
				b.ReportAllocs()
				for b.Loop() {
					c, _ := record.Find(bed.book, a, &q)
					for _, ok := c.Next(r); ok; _, ok = c.Next(r) {
						records++
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(records), "ns/record")
			})
		}
	}
}
