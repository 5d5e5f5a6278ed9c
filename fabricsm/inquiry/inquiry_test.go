package inquiry_test

import (
	"bytes"
	"errors"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/inquiry"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

const secret = 0xa5a5a5a5deadbeef

// get returns a request by directed route, or to a LID with nil.
func get(attr mad.AttrID, mod uint32, route *mad.Route) mad.MAD {
	var m mad.MAD
	mad.NewSMP(&m, mad.Header{Method: mad.MethodGet, TID: 0x77, Attr: attr, Mod: mod}, route, ib.MKey{})
	return m
}

// counters returns a request for the counters of a port.
func counters() (m mad.MAD) {
	m.SetHeader(mad.Header{Class: mad.ClassPerf, ClassVersion: 1, Method: mad.MethodGet, TID: 0x77, Attr: mad.PerfAttrPortCounters})
	return m
}

// TestCheck: a tool may read, and nothing else.
func TestCheck(t *testing.T) {
	t.Parallel()
	route := mad.MakeRoute(1, 2)
	for _, tt := range []struct {
		name   string
		change func(*mad.MAD)
		may    bool
	}{
		{"Get", func(*mad.MAD) {}, true},
		{"to a LID", func(m *mad.MAD) { *m = get(mad.AttrPortInfo, 1, nil) }, true},
		{"Set", func(m *mad.MAD) { m.SetMethod(mad.MethodSet) }, false},
		{"trap", func(m *mad.MAD) { m.SetMethod(mad.MethodTrap) }, false},
		{"trap repress", func(m *mad.MAD) { m.SetMethod(mad.MethodTrapRepress) }, false},
		{"an answer", func(m *mad.MAD) { m.SetMethod(mad.MethodGetResp) }, false},
		{"notice", func(m *mad.MAD) { m.SetAttr(mad.AttrNotice) }, false},
		{"vendor diagnostics", func(m *mad.MAD) { m.SetAttr(mad.AttrVendorDiag) }, false},
		{"unknown attribute", func(m *mad.MAD) { m.SetAttr(0xff77) }, false},
		{"subnet administration", func(m *mad.MAD) { m[1] = byte(mad.ClassSubnAdm) }, false},
		{"vendor class", func(m *mad.MAD) { m[1] = byte(mad.ClassVendorVS) }, false},
		{"counters", func(m *mad.MAD) { *m = counters() }, true},
		{"counters are cleared", func(m *mad.MAD) { *m = counters(); m.SetMethod(mad.MethodSet) }, false},
		{"other counters", func(m *mad.MAD) { *m = counters(); m.SetAttr(0x1b) }, false},
		{"other class version", func(m *mad.MAD) { m[2] = 2 }, false},
		{"other base version", func(m *mad.MAD) { m[0] = 2 }, false},
		{"returning", func(m *mad.MAD) { m.SetReturning(true) }, false},
		{"under way", func(m *mad.MAD) { m.SetHopPointer(1) }, false},
		{"too many hops", func(m *mad.MAD) { m[7] = 64 }, false},
		{"begins by LID", func(m *mad.MAD) { m.SetDrSLID(5) }, false},
		{"ends by LID", func(m *mad.MAD) { m.SetDrDLID(5) }, false},
	} {
		m := get(mad.AttrNodeInfo, 0, &route)
		tt.change(&m)
		if err := inquiry.Check(&m); (err == nil) != tt.may || err != nil && !errors.Is(err, inquiry.ErrRefused) {
			t.Errorf("%s: %v, want that it may: %v", tt.name, err, tt.may)
		}
	}
}

// fabric is host 0 and host 1 at leaf 1, host 2 at leaf 2, and a link between the leaves.
func fabric() (*topo.Fabric, *topotest.Kit) {
	var k topotest.Kit
	leaf1, leaf2 := k.Switch(1, 1, 8), k.Switch(1, 2, 8)
	for i, at := range []topo.NodeID{leaf1, leaf1, leaf2} {
		k.LinkPorts(k.Host(2), 1, at, i+1)
	}
	k.LinkPorts(leaf1, 7, leaf2, 8)
	return k.Fabric(), &k
}

func TestWays(t *testing.T) {
	t.Parallel()
	f, k := fabric()
	w := inquiry.NewWays(f, topotest.HostGUID(0)+1)
	own, leaf1, leaf2 := topotest.HostGUID(0), topotest.SwitchGUID(1, 1), topotest.SwitchGUID(1, 2)
	lid := func(n topo.NodeID, port ib.PortNum) ib.LID { return f.Port(f.PortOf(n, port)).LID }
	for _, tt := range []struct {
		name  string
		lid   ib.LID
		route mad.Route
		place ib.Place
	}{
		{"own", lid(k.Hosts[0], 1), mad.Route{}, ib.Place{}},
		{"nearest switch", lid(f.NodeByGUID(leaf1), 0), mad.MakeRoute(1), ib.Place{Switch: own, Port: 1}},
		{"neighbour", lid(k.Hosts[1], 1), mad.MakeRoute(1, 2), ib.Place{Switch: leaf1, Port: 2}},
		{"far switch", lid(f.NodeByGUID(leaf2), 0), mad.MakeRoute(1, 7), ib.Place{Switch: leaf1, Port: 7}},
		{"far host", lid(k.Hosts[2], 1), mad.MakeRoute(1, 7, 3), ib.Place{Switch: leaf2, Port: 3}},
	} {
		want := inquiry.Target{Route: tt.route, Place: tt.place, Known: true}
		if got, ok := w.ToLID(tt.lid); !ok || got != want {
			t.Errorf("%s by LID: %+v, %v", tt.name, got, ok)
		}
		if got := w.Along(tt.route); got != want {
			t.Errorf("%s by route: %+v", tt.name, got)
		}
	}
	for _, lid := range []ib.LID{0, 999, ib.PermissiveLID} {
		if got, ok := w.ToLID(lid); ok {
			t.Errorf("LID %d is that of %+v", lid, got)
		}
	}
	for _, out := range []mad.Route{mad.MakeRoute(2), mad.MakeRoute(0), mad.MakeRoute(1, 5), mad.MakeRoute(1, 9), mad.MakeRoute(1, 2, 1, 1), mad.MakeRoute(1, 0)} {
		if got := w.Along(out); got.Known || got.Route != out {
			t.Errorf("%v leads to %+v", out, got)
		}
	}
	if got := inquiry.NewWays(f, 0x99).Along(mad.MakeRoute(1)); got.Known {
		t.Errorf("from an unknown port: %+v", got)
	}
}

// A LID of two nodes is that of none.
func TestTwins(t *testing.T) {
	t.Parallel()
	f, k := fabric()
	p := f.PortOf(k.Hosts[1], 1)
	twin := k.Port(p)
	twin.LID = f.Port(f.PortOf(k.Hosts[2], 1)).LID
	k.SetPort(p, twin)
	if got, ok := inquiry.NewWays(k.Freeze(), topotest.HostGUID(0)+1).ToLID(twin.LID); ok {
		t.Errorf("the LID of two hosts leads to %+v", got)
	}
}

// TestTranslate: the key goes to the device alone, and no tool sees one.
func TestTranslate(t *testing.T) {
	t.Parallel()
	f, k := fabric()
	w := inquiry.NewWays(f, topotest.HostGUID(0)+1)
	place := ib.Place{Switch: topotest.SwitchGUID(1, 1), Port: 2}
	key := func(at ib.Place) ib.MKey {
		if at == place {
			return ib.NewMKey(secret)
		}
		return ib.MKey{}
	}
	lid := f.Port(f.PortOf(k.Hosts[1], 1)).LID
	route, unknown := mad.MakeRoute(1, 2), mad.MakeRoute(1, 6)
	for _, tool := range []mad.MAD{get(mad.AttrPortInfo, 1, &route), get(mad.AttrPortInfo, 1, nil)} {
		sent, err := inquiry.Request(&tool, lid, 0x5, w, key)
		if err != nil {
			t.Fatal(err)
		}
		is := &sent.MAD
		if is.MKey() != ib.NewMKey(secret) || is.Route() != route || is.TID() != 5 || is.Mod() != 1 || is.Method() != mad.MethodGet || sent.LID != ib.PermissiveLID {
			t.Errorf("sent is by %v to %v, with the key: %v", is.Route(), is.Mod(), is.MKey() == ib.NewMKey(secret))
		}
		got := sent.MAD
		got.SetMethod(mad.MethodGetResp)
		got.SetReturning(true)
		if err := mad.Encode(got.Data(), &mad.PortInfo{MKey: ib.NewMKey(secret), LID: 9}); err != nil {
			t.Fatal(err)
		}
		seen, ok := inquiry.Answer(&tool, &sent, &got, 0)
		var pi mad.PortInfo
		if err := mad.Decode(seen.Data(), &pi); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if seen.TID() != tool.TID() || seen.Class() != tool.Class() || seen.Method() != mad.MethodGetResp || pi.LID != 9 {
			t.Errorf("the tool sees %v %v of %v", seen.Class(), seen.Method(), pi.LID)
		}
		if bytes.Contains(seen[:], []byte{0xa5, 0xa5, 0xa5, 0xa5, 0xde, 0xad, 0xbe, 0xef}) {
			t.Error("the tool sees the key")
		}
		for name, wrong := range map[string]func(*mad.MAD){
			"a request": func(m *mad.MAD) { m.SetMethod(mad.MethodGet) }, "another attribute": func(m *mad.MAD) { m.SetAttr(mad.AttrNodeInfo) },
			"another modifier": func(m *mad.MAD) { m.SetMod(2) }, "another route": func(m *mad.MAD) { m.InitialPath()[2] = 3 }, "outbound": func(m *mad.MAD) { m.SetReturning(false) },
		} {
			other := got
			wrong(&other)
			if _, ok := inquiry.Answer(&tool, &sent, &other, 0); ok {
				t.Errorf("%s is taken for the answer", name)
			}
		}
	}
	away := get(mad.AttrNodeInfo, 0, &unknown)
	if sent, err := inquiry.Request(&away, 0, 1, w, func(ib.Place) ib.MKey { return ib.NewMKey(secret) }); err != nil || !sent.MAD.MKey().IsZero() {
		t.Errorf("where no device is known: %v, with a key: %v", err, !sent.MAD.MKey().IsZero())
	}
	set := get(mad.AttrPortInfo, 1, &route)
	set.SetMethod(mad.MethodSet)
	if sent, err := inquiry.Request(&set, 0, 1, w, key); !errors.Is(err, inquiry.ErrRefused) || sent != (inquiry.Sent{}) {
		t.Errorf("a Set: %v", err)
	}
	nowhere := get(mad.AttrPortInfo, 1, nil)
	if _, err := inquiry.Request(&nowhere, 999, 1, w, key); !errors.Is(err, inquiry.ErrRefused) {
		t.Errorf("to a LID of no device: %v", err)
	}
}

// TestCounters: a request for counters goes to its LID as it is, and only that LID answers it.
func TestCounters(t *testing.T) {
	t.Parallel()
	f, k := fabric()
	w := inquiry.NewWays(f, topotest.HostGUID(0)+1)
	lid := f.Port(f.PortOf(k.Hosts[2], 1)).LID
	tool := counters()
	tool[65] = 1 // of port 1
	sent, err := inquiry.Request(&tool, lid, 9, w, func(ib.Place) ib.MKey { t.Error("a key is looked for"); return ib.NewMKey(secret) })
	if err != nil || sent.LID != lid || sent.MAD.TID() != 9 || !bytes.Equal(sent.MAD[24:], tool[24:]) {
		t.Fatalf("%v, to LID %d, TID %d", err, sent.LID, sent.MAD.TID())
	}
	got := sent.MAD
	got.SetMethod(mad.MethodGetResp)
	got[100] = 7
	if seen, ok := inquiry.Answer(&tool, &sent, &got, lid); !ok || seen.TID() != tool.TID() || seen[100] != 7 {
		t.Errorf("the tool sees %v, TID %v", ok, seen.TID())
	}
	if _, ok := inquiry.Answer(&tool, &sent, &got, lid+1); ok {
		t.Error("another LID answers")
	}
	if _, err := inquiry.Request(&tool, 999, 9, w, nil); !errors.Is(err, inquiry.ErrRefused) {
		t.Errorf("to a LID of no device: %v", err)
	}
}

// FuzzRequest: whatever a tool sends, what goes out is a Get of an SMP, and what it sees has no key.
func FuzzRequest(f *testing.F) {
	fab, _ := fabric()
	w := inquiry.NewWays(fab, topotest.HostGUID(0)+1)
	route := mad.MakeRoute(1, 2)
	for _, m := range []mad.MAD{get(mad.AttrPortInfo, 1, &route), get(mad.AttrSMInfo, 0, nil), counters()} {
		f.Add(m[:], uint16(4))
	}
	f.Fuzz(func(t *testing.T, b []byte, lid uint16) {
		var tool mad.MAD
		copy(tool[:], b)
		sent, err := inquiry.Request(&tool, ib.LID(lid), 3, w, func(ib.Place) ib.MKey { return ib.NewMKey(secret) })
		if err != nil {
			if !errors.Is(err, inquiry.ErrRefused) {
				t.Error(err)
			}
			return
		}
		is := &sent.MAD
		if is.Method() != mad.MethodGet || is.IsSMP() && (!is.IsDR() || is.Route().Len() > mad.MaxHops || sent.LID != ib.PermissiveLID) || !is.IsSMP() && is.Class() != mad.ClassPerf {
			t.Errorf("sent is %v of class %v", is.Method(), is.Class())
		}
		got := sent.MAD
		got.SetMethod(mad.MethodGetResp)
		if is.IsDR() {
			got.SetReturning(true)
		}
		if seen, ok := inquiry.Answer(&tool, &sent, &got, sent.LID); !ok || is.IsSMP() && !seen.MKey().IsZero() || seen.TID() != tool.TID() {
			t.Errorf("the tool sees %v, a key: %v", ok, !seen.MKey().IsZero())
		}
	})
}
