package reader_test

import (
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/reader"
	"portcullis/fabricsm/sim"
)

// TestReadsWhatDevicesHold compares what was read with the simulator's own view of every device.
func TestReadsWhatDevicesHold(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	found := b.read()
	if len(found.Unknown) > 0 || found.Strays > 0 {
		t.Errorf("unknown: %v, %d strays", found.Unknown, found.Strays)
	}
	if len(found.Fabric.Devices) != len(b.list.Nodes) {
		t.Errorf("%d devices were found of %d", len(found.Fabric.Devices), len(b.list.Nodes))
	}
	for i := range b.list.Nodes {
		n := &b.list.Nodes[i]
		d := b.device(found, n.Name)
		for num := 1; num < len(n.Ports); num++ {
			port, want := ib.PortNum(num), b.fabric.PortInfo(n.Name, ib.PortNum(num))
			got := &d.Ports[num]
			if got.State != proof.Known(want.PortState) {
				t.Errorf("%s port %d: state %v, want %v", n.Name, num, got.State, want.PortState)
			}
			far, linked := b.fabric.Cable(n.Name, port)
			if linked != (got.Cable.Port != 0) || linked && (got.Cable.Port != far.Port || found.Fabric.Devices[got.Cable.Device].GUID != b.list.Find(far.Node).GUID) {
				t.Errorf("%s port %d: cable %v, want %v", n.Name, num, got.Cable, far)
			}
			if !linked {
				continue
			}
			if keys := withoutEmpty(got.PKeys.Value); got.PKeys.How != proof.WasRead || !slices.Equal(keys, b.fabric.PKeys(n.Name, port)) {
				t.Errorf("%s port %d: P_Keys %v, want %v", n.Name, num, keys, b.fabric.PKeys(n.Name, port))
			}
			checks := proof.Checks{
				Inbound: want.PartitionEnforcementInbound, Outbound: want.PartitionEnforcementOutbound,
				RawInbound: want.FilterRawInbound, RawOutbound: want.FilterRawOutbound,
			}
			if d.Type == ib.NodeSwitch && got.Check != proof.Known(checks) {
				t.Errorf("%s port %d: checks %v, want %v", n.Name, num, got.Check, checks)
			}
		}
		if d.Type == ib.NodeSwitch {
			b.compareForwarding(d, n.Name)
		}
	}
	if v := b.verdict(found); v.Depth() != proof.HeldByEitherSide {
		t.Errorf("red and blue are held apart by %v", v.Depth())
	}
}

func withoutEmpty(list []ib.PKey) []ib.PKey {
	return slices.DeleteFunc(slices.Clone(list), func(k ib.PKey) bool { return !k.Valid() })
}

func (b *bed) compareForwarding(d *proof.Device, node string) {
	b.t.Helper()
	if len(d.LFT.Value) != int(b.fabric.SwitchInfo(node).LinearFDBTop)+1 || len(d.LFT.Value) < 5 {
		b.t.Errorf("the LFT of %s has %d entries", node, len(d.LFT.Value))
	}
	for lid := 1; lid < len(d.LFT.Value); lid++ {
		if got, want := d.LFT.Value[lid], b.fabric.Egress(node, ib.LID(lid)); got != want {
			b.t.Errorf("%s sends LID %d to port %d, want %d", node, lid, got, want)
		}
	}
	for lid := ib.MinMulticastLID; lid < ib.MinMulticastLID+64; lid++ {
		if got, want := d.MFT.Value[lid], proof.PortSet(b.fabric.MulticastPorts(node, lid)...); got != want {
			b.t.Errorf("%s sends LID %x to %v, want %v", node, uint16(lid), got, want)
		}
	}
}

// TestEachFaultIsUnknown: what a device does not answer, refuses, or answers with nonsense, and what changes while it is
// read, is never known, and no isolation follows where it counts.
func TestEachFaultIsUnknown(t *testing.T) {
	t.Parallel()
	lost := func(*mad.MAD) bool { return false }
	faults := []struct {
		name  string
		round int
		spoil func(*mad.MAD) bool
		want  reader.Cause
	}{
		{"no answer", 1, lost, reader.Silent},
		{"no second answer", 2, lost, reader.Silent},
		{"refused", 1, func(m *mad.MAD) bool { m.SetStatus(mad.StatusInvalidField); return true }, reader.Refused},
		{"refused later", 2, func(m *mad.MAD) bool { m.SetStatus(mad.StatusUnsupportedMethodAttr); return true }, reader.Refused},
		{"busy for ever", 1, func(m *mad.MAD) bool { m.SetStatus(mad.StatusBusy); return true }, reader.Silent},
		{"other attribute", 1, func(m *mad.MAD) bool { m.SetAttr(mad.AttrLedInfo); return true }, reader.Nonsense},
		{"other modifier", 1, func(m *mad.MAD) bool { m.SetMod(m.Mod() + 1<<8); return true }, reader.Nonsense},
		{"other route", 2, func(m *mad.MAD) bool { m.InitialPath()[1] ^= 4; return true }, reader.Nonsense},
		{"on the way out", 1, func(m *mad.MAD) bool { m.SetReturning(false); return true }, reader.Nonsense},
		{"changed", 2, func(m *mad.MAD) bool { m.Data()[spoiled[m.Attr()]] ^= 0x21; return true }, reader.Changed},
	}
	tables := []struct {
		node string
		attr mad.AttrID
		how  func(*proof.Device) []proof.Reading
	}{
		{"leaf1", mad.AttrPKeyTable, func(d *proof.Device) []proof.Reading {
			return []proof.Reading{d.Ports[1].PKeys.How, d.Ports[2].PKeys.How}
		}},
		{"leaf1", mad.AttrPortInfo, func(d *proof.Device) []proof.Reading {
			return []proof.Reading{d.Ports[1].Check.How, d.Ports[2].State.How}
		}},
		{"leaf1", mad.AttrLinearForwardingTable, func(d *proof.Device) []proof.Reading { return []proof.Reading{d.LFT.How} }},
		{"leaf1", mad.AttrMulticastForwardingTable, func(d *proof.Device) []proof.Reading { return []proof.Reading{d.MFT.How} }},
		{"leaf1", mad.AttrSwitchInfo, func(d *proof.Device) []proof.Reading {
			return []proof.Reading{d.LFT.How, d.MFT.How, d.MulticastDefaults.How, d.Ports[1].PKeys.How}
		}},
		{"h1", mad.AttrPKeyTable, func(d *proof.Device) []proof.Reading { return []proof.Reading{d.Ports[1].PKeys.How} }},
		{"h1", mad.AttrPortInfo, func(d *proof.Device) []proof.Reading { return []proof.Reading{d.Ports[1].State.How} }},
	}
	for _, table := range tables {
		for _, fault := range faults {
			t.Run(table.node+" "+table.attr.String()+" "+fault.name, func(t *testing.T) {
				t.Parallel()
				b := newBed(t)
				if table.attr == mad.AttrMulticastForwardingTable {
					b.makeGroup("leaf1")
				}
				spoiltOne := 0
				b.change = func(round int, m *mad.MAD) bool {
					// Requests that are repeated count, so a round is "at least".
					if round < fault.round || fault.round == 1 && round > b.options.Attempts || !b.to(m, table.node, table.attr) {
						return true
					}
					spoiltOne++
					return fault.spoil(m)
				}
				found := b.read()
				if spoiltOne == 0 {
					t.Fatal("no such answer came")
				}
				for i, how := range table.how(b.device(found, table.node)) {
					if how == proof.WasRead {
						t.Errorf("value %d of %v counts as read", i, table.attr)
					}
				}
				has := func(u reader.Unknown) bool { return u.Cause == fault.want }
				if !slices.ContainsFunc(found.Unknown, has) {
					t.Errorf("no value is unknown because %v: %v", fault.want, found.Unknown)
				}
				if v := b.verdict(found); v[proof.Both] == proof.Leaks {
					t.Errorf("a clean fabric leaks: %v", v)
				}
			})
		}
	}
}

// spoiled is which byte of an attribute changes: one that counts.
var spoiled = map[mad.AttrID]int{
	mad.AttrPKeyTable: 1, mad.AttrPortInfo: 43, mad.AttrLinearForwardingTable: 2, mad.AttrMulticastForwardingTable: 1,
	mad.AttrSwitchInfo: 15, mad.AttrNodeInfo: 19,
}

// makeGroup has a switch forward multicast.
func (b *bed) makeGroup(node string) {
	b.t.Helper()
	b.write(node, mad.AttrSwitchInfo, 0, func(data []byte) {
		si := mad.SwitchInfo{}
		if err := mad.Decode(data, &si); err != nil {
			b.t.Fatal(err)
		}
		si.MulticastFDBTop = ib.MinMulticastLID + 31
		mad.MustEncode(data, &si)
	})
}

// TestUnknownIsNotIsolated: where switch and adapter of the only port of a tenant hide their tables, its isolation is unproven.
func TestUnknownIsNotIsolated(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.change = func(_ int, m *mad.MAD) bool { return m.Attr() != mad.AttrPKeyTable }
	if v := b.verdict(b.read()); v != (proof.Verdict{}) {
		t.Errorf("without any P_Key table the verdict is %v", v)
	}
}

// TestSilentDevice: a port behind which nothing answers is an undeclared device.
func TestSilentDevice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if err := b.fabric.SetFault("h1", sim.Fault{Silent: true}); err != nil {
		t.Fatal(err)
	}
	found := b.read()
	at := b.place("h1")
	sees := func(e reader.End) bool { return e.At == at }
	if slices.ContainsFunc(found.Ends, sees) {
		t.Error("an end was found at the place of a silent host")
	}
	has := func(u reader.Unknown) bool {
		return u.What == "the device behind" && u.Port.Port == at.Port && u.Cause == reader.Silent
	}
	if !slices.ContainsFunc(found.Unknown, has) {
		t.Errorf("that it is silent is not said: %v", found.Unknown)
	}
	result, err := proof.Prove(found.Fabric)
	if err != nil || !slices.Contains(result.Parties(), proof.Owner{Kind: proof.Undeclared}) {
		t.Errorf("no undeclared device is a party: %v %v", result.Parties(), err)
	}
}

// TestLossIsNoFault: a request that gets lost is repeated.
func TestLossIsNoFault(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	n := 0
	b.change = func(int, *mad.MAD) bool { n++; return n%7 != 0 }
	b.options.Attempts = 8
	if found := b.read(); len(found.Unknown) > 0 {
		t.Errorf("unknown: %v", found.Unknown)
	}
}

// TestOwnPortSilent: without the own port there is no result.
func TestOwnPortSilent(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.change = func(int, *mad.MAD) bool { return false }
	if found, err := b.try(); err == nil {
		t.Errorf("found %v", found)
	}
}

// TestPlantedLeak: a change in a switch and an adapter that the Subnet Manager did not make is found by reading.
func TestPlantedLeak(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	stray := func(data []byte) { data[10], data[11] = 0x82, 0x02 }
	at := b.place("h1")
	b.write("h1", mad.AttrPKeyTable, 0, stray)
	b.write(b.node(at.Switch), mad.AttrPKeyTable, mad.PKeyTableMod(at.Port, 0), stray)
	v := b.verdict(b.read())
	if v[proof.Both] != proof.Leaks {
		t.Errorf("with a full member of blue at a host of red, the verdict is %v", v)
	}
}

// TestKeysOnlyWhereDeclared: no M_Key is sent to a place for which none is given.
func TestKeysOnlyWhereDeclared(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	secret := ib.NewMKey(0xFEED)
	b.options.Key = func(at ib.Place) ib.MKey {
		if at == b.place("h2") {
			return secret
		}
		return ib.MKey{}
	}
	keyed := 0
	b.change = func(_ int, m *mad.MAD) bool {
		if m.MKey() == secret {
			keyed++
			if !b.to(m, "h2", m.Attr()) {
				t.Errorf("the M_Key of h2 is sent elsewhere: %v of %v", m.Attr(), m.Route())
			}
		}
		return true
	}
	b.read()
	if keyed == 0 {
		t.Error("h2 was not asked under its M_Key")
	}
}

// TestUndeclaredSwitch: what is behind a switch that nothing declares is not read, so that it can't keep the reader busy.
func TestUndeclaredSwitch(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.options.Owner = func(ib.Place, reader.Identity) proof.Owner { return proof.Owner{} }
	if found := b.read(); len(found.Fabric.Devices) != 2 {
		t.Errorf("%d devices were found, want the own adapter and the switch", len(found.Fabric.Devices))
	}
}

// TestTooManyDevices: the reader stops at its bound, and says so.
func TestTooManyDevices(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.options.Devices = 3
	found := b.read()
	has := func(u reader.Unknown) bool { return u.Cause == reader.TooMany }
	if len(found.Fabric.Devices) != 3 || !slices.ContainsFunc(found.Unknown, has) {
		t.Errorf("%d devices, unknown %v", len(found.Fabric.Devices), found.Unknown)
	}
}

// FuzzAnswers: whatever devices answer, the reader ends, and the prover takes what it found.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte("\x01\x00\x10\xff\x02\x40\x44\x07\x80\xc0"))
	f.Fuzz(func(t *testing.T, noise []byte) {
		if len(noise) == 0 {
			return
		}
		n := 0
		next := func() byte { n++; return noise[n%len(noise)] }
		state := uint32(0)
		r, err := reader.New(reader.Options{
			Owner:  func(ib.Place, reader.Identity) proof.Owner { return proof.Owner{Kind: proof.Infrastructure} },
			Draw:   func() uint32 { state++; return state },
			Window: 4, Attempts: 2, Devices: 8,
		})
		if err != nil {
			t.Fatal(err)
		}
		for steps := 0; steps < 200_000 && !r.Done(); steps++ {
			m, ok := r.Next()
			if !ok {
				t.Fatal("the reader waits for nothing")
			}
			m.Respond(mad.StatusOK)
			for i := range m.Data() {
				m.Data()[i] = next()
			}
			if next()%4 == 0 {
				m[int(next())] ^= next()
			}
			id := m.TID()
			if !r.Answer(&m) {
				for guess := range state + 1 {
					r.Expire(ib.TID(guess))
				}
			}
			r.Expire(id)
		}
		if !r.Done() {
			return // it is bounded by the number of devices, and the test by steps
		}
		if found, err := r.Found(); err == nil {
			if _, err := proof.Prove(found.Fabric); err != nil {
				t.Errorf("the prover rejects what was read: %v", err)
			}
		}
	})
}
