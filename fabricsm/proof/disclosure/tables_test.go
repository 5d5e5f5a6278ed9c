package disclosure

import (
	"math/rand/v2"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/testbed"
)

// What tables say of two ports: where one was not read, nothing is known; where the switch port lacks the P_Key, they share none.
func TestSharing(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	q := Question{}
	from, told := b.port("h1"), answer(mad.AttrNodeRecord, mad.NodeRecord{LID: b.lidOf("h4")})
	at := func(host string) (own, front *proof.Port) {
		e := b.found.Ends[b.port(host)]
		own = &b.found.Fabric.Devices[e.Port.Device].Ports[e.Port.Port]
		return own, &b.found.Fabric.Devices[own.Cable.Device].Ports[own.Cable.Port]
	}
	own, front := at("h4")
	ownWas, frontWas := *own, *front
	for name, c := range map[string]struct {
		set  func()
		want string
	}{
		"shared":                 {func() {}, ""},
		"own table not read":     {func() { own.PKeys.How = proof.NotRead }, "undecided 1"},
		"switch port not read":   {func() { front.PKeys.How = proof.Inconsistent }, "undecided 1"},
		"checks not read":        {func() { front.Check.How = proof.NotRead }, "undecided 1"},
		"not at the switch port": {func() { front.PKeys.Value = []ib.PKey{0x7FFF, blueKey} }, "LID of h4"},
		"not checked there":      {func() { front.PKeys.Value = []ib.PKey{0x7FFF, blueKey}; front.Check.Value = proof.Checks{} }, ""},
		"both limited": {func() {
			own.PKeys.Value = []ib.PKey{0x7FFF, blueKey, sharedKey.Limited()}
			front.PKeys.Value = own.PKeys.Value
		}, "LID of h4"},
		"limited by its own word": {func() { own.PKeys.Value = []ib.PKey{0x7FFF, blueKey, sharedKey.Limited()} }, "undecided 1"},
		"none by its own word":    {func() { own.PKeys.Value = make([]ib.PKey, 32) }, "undecided 1"},
		"not read, and no P_Key":  {func() { front.PKeys.How = proof.NotRead; own.PKeys.Value = []ib.PKey{0x7FFF, blueKey} }, "undecided 1"},
		"an alias of another one": {func() { own.Aliases = []proof.Alias{{GUID: 0x77}} }, ""},
	} {
		*own, *front = ownWas, frontWas
		c.set()
		b.Tables = New(b.found, ib.DefaultPrefix)
		j := b.Judge(from, &q, told, false)
		if got := b.seen(&j); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	*own, *front = ownWas, frontWas
	// Hosts of one tenant may know of each other, also without a partition in common; so may ports of one device.
	mate, _ := at("h3")
	mateWas := *mate
	mate.PKeys.Value = []ib.PKey{0x7FFF}
	b.Tables = New(b.found, ib.DefaultPrefix)
	j := b.Judge(from, &q, answer(mad.AttrNodeRecord, mad.NodeRecord{LID: b.lidOf("h3")}), false)
	if got := b.seen(&j); got != "" {
		t.Errorf("of the same tenant: %q", got)
	}
	*mate = mateWas
	b.Tables = New(b.found, ib.DefaultPrefix)
	b.ports[b.port("h2")].Port.Device = b.ports[from].Port.Device
	if r := b.between(from, b.port("h2")); r != near {
		t.Errorf("of the same device: %v", r)
	}
	// A LID that two ports have names neither.
	b.Tables = New(b.found, ib.DefaultPrefix)
	lid := b.lidOf("h2")
	b.add(b.found, &b.found.Ends[b.port("h2")], nil)
	j = b.Judge(from, &q, answer(mad.AttrNodeRecord, mad.NodeRecord{LID: lid}), false)
	if got := b.seen(&j); got != "undecided 1" || b.asks(b.port("h2")) {
		t.Errorf("a LID of two ports: %q", got)
	}
	other, _ := at("h2")
	other.Aliases = []proof.Alias{{GUID: 0x77}}
	b.Tables = New(b.found, ib.DefaultPrefix)
	j = b.Judge(from, &q, answer(mad.AttrPathRecord, mad.PathRecord{DGID: ib.MakeGID(ib.DefaultPrefix, 0x77)}), false)
	if got := b.seen(&j); got != "DGID of h2" {
		t.Errorf("by an alias: %q", got)
	}
}

// The sample has a port of each party first, and is drawn again each time.
func TestSample(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	r := rand.New(rand.NewPCG(1, 2))
	first := map[int]bool{}
	for range 200 {
		chosen, parties, covered := b.Sample(4, r.IntN)
		owners := map[proof.Owner]bool{}
		for _, i := range chosen {
			owners[b.Owner(i)] = true
			if b.ports[i].owner.Kind == proof.Infrastructure {
				t.Fatal("the manager's port asks")
			}
		}
		if len(chosen) != 4 || parties != 4 || covered != 4 || len(owners) != 4 { // red, blue, without a tenant, undeclared
			t.Fatalf("%v: %d parties, %d covered", chosen, parties, covered)
		}
		first[chosen[0]] = true
	}
	if len(first) != 6 {
		t.Errorf("%d of 6 ports were ever first", len(first))
	}
	if chosen, parties, covered := b.Sample(2, r.IntN); len(chosen) != 2 || parties != 4 || covered != 2 {
		t.Errorf("of two: %v, %d, %d", chosen, parties, covered)
	}
	// An adapter that claims the LIDs of a party has it not be asked, which shows.
	claimed := New(b.found, ib.DefaultPrefix)
	for i := range claimed.ports {
		if claimed.ports[i].owner == b.ports[b.port("h1")].owner {
			claimed.byLID[claimed.ports[i].lid] = several
		}
	}
	if chosen, parties, covered := claimed.Sample(100, r.IntN); parties != 4 || covered != 3 || len(chosen) >= 6 {
		t.Errorf("with LIDs that are claimed: %d ports, %d of %d parties", len(chosen), covered, parties)
	}
	if chosen, _, _ := b.Sample(100, r.IntN); len(chosen) != 6 {
		t.Errorf("of all: %v", chosen)
	}
	for range 100 {
		if s := b.Stranger(b.port("h1"), r.IntN); s == None || b.between(b.port("h1"), s) != apart {
			t.Fatalf("%d is no stranger to h1", s)
		}
		lid := b.Unused(r.IntN)
		if _, is := b.byLID[lid]; is || !lid.IsUnicast() || b.switches[lid] != 0 {
			t.Fatalf("LID %v is used", lid)
		}
	}
	empty := New(&reader.Found{Fabric: &proof.Fabric{}}, ib.DefaultPrefix)
	if chosen, _, _ := empty.Sample(9, r.IntN); len(chosen) != 0 || empty.Stranger(None, r.IntN) != None || empty.Unused(r.IntN) == 0 {
		t.Error("of nothing there is something")
	}
}

// Every question is without a key, of the port's LID, and within the bound; one of them is a control, and the kinds of records are all there.
func TestQuestions(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, asker := range []int{b.port("h1"), None} {
		list := b.Questions(asker, 0x1234, b.port("h2"))
		if len(list) > MaxQuestions || len(list) < 40 {
			t.Errorf("%d questions", len(list))
		}
		want, attrs, claims, controls := ib.LID(0x1234), map[mad.AttrID]bool{}, 0, 0
		if asker != None {
			want = b.lidOf("h1")
		}
		for i := range list {
			q := &list[i]
			attrs[q.MAD.Attr()] = true
			if q.Control {
				controls++
			}
			if q.Claim != (ib.GID{}) {
				claims++
			}
			if q.LID != want || q.MAD.SAKeyBits() != 0 || q.MAD.Class() != mad.ClassSubnAdm || q.MAD.IsResponse() || q.MAD.Method() == mad.MethodSet || q.MAD.Method() == mad.MethodDelete {
				t.Errorf("question %d: %+v of LID %v", i, q.MAD.Header(), q.LID)
			}
		}
		if controls != 1 || claims != 1 || len(attrs) != 18 {
			t.Errorf("%d controls, %d claims, %d attributes", controls, claims, len(attrs))
		}
	}
	if list := b.Questions(b.port("h1"), 0, None); len(list) < 17 {
		t.Errorf("without a stranger: %d", len(list))
	}
}

// FuzzJudge judges any bytes: it neither fails nor takes long, and never finds what infrastructure is.
func FuzzJudge(f *testing.F) {
	b := newBed(f)
	stranger := b.port("h2")
	one := answer(mad.AttrPathRecord, mad.PathRecord{DLID: b.lidOf("h2")})
	f.Add(one[0][:], 0, true, 1)
	for _, attr := range tables {
		m := segments(attr, mad.RecordSize(attr), make([]byte, 500))
		var all []byte
		for i := range m {
			all = append(all, m[i][:]...)
		}
		f.Add(all, 1, false, 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, from int, cut bool, q int) {
		var all []mad.MAD
		for len(data) > 0 && len(all) < 64 {
			var m mad.MAD
			data = data[copy(m[:], data):]
			all = append(all, m)
		}
		asker := None
		if from >= 0 {
			asker = from % len(b.ports)
		}
		questions := b.Questions(asker, 1, stranger)
		j := b.Judge(asker, &questions[(q&0xffff)%len(questions)], all, cut)
		if j.Answered != (len(all) > 0) || len(j.Findings) > maxFindings || j.Records < 0 {
			t.Errorf("%+v", j)
		}
		for i := range j.Findings {
			if s := j.Findings[i].Subject; s != None && (s == asker || b.ports[s].owner.Kind == proof.Infrastructure) {
				t.Errorf("%+v", j.Findings[i])
			}
		}
	})
}

// LIDs are those of PortInfo, and a port without one asks nothing.
func TestLIDs(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for i := range b.found.Ends {
		if lid, lmc, ok := b.found.LIDs(b.found.Ends[i].Port); !ok || lmc != 0 || lid != b.ports[i].lid || b.byLID[lid] != i {
			t.Errorf("port %d: %v, %v, %t", i, lid, lmc, ok)
		}
	}
	for _, at := range []proof.Place{{Device: -1}, {Device: 999, Port: 1}, {Device: b.found.Ends[0].Port.Device, Port: 9}} {
		if lid, _, ok := b.found.LIDs(at); ok {
			t.Errorf("%v has LID %v", at, lid)
		}
	}
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 3, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	fresh := &bed{t: t}
	if fresh.stage, err = testbed.New(testbed.Options{Netlist: l, Manager: "sm"}); err != nil {
		t.Fatal(err)
	}
	fresh.read()
	for i := range fresh.found.Ends {
		if lid, _, ok := fresh.found.LIDs(fresh.found.Ends[i].Port); ok || fresh.asks(i) {
			t.Errorf("without a Subnet Manager port %d has LID %v", i, lid)
		}
	}
	if len(fresh.byLID) != 0 || len(fresh.found.Ends) == 0 {
		t.Errorf("%d LIDs of %d ports", len(fresh.byLID), len(fresh.found.Ends))
	}
}
