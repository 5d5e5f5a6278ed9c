package sim_test

import (
	"errors"
	"slices"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport"
)

func hostPort(t *testing.T, f *sim.Fabric, node string, function bool) *sim.HostPort {
	t.Helper()
	h, err := f.HostPort(node, 1, function)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// ownSMP is an SMP by a path that may be empty.
func ownSMP(method mad.Method, attr mad.AttrID, mod uint32, route ...ib.PortNum) mad.MAD {
	var m mad.MAD
	r := mad.MakeRoute(route...)
	mad.NewSMP(&m, mad.Header{Method: method, TID: 0xABCD_0000_0000_0007, Attr: attr, Mod: mod}, &r, ib.MKey{})
	return m
}

func TestHostPort(t *testing.T) {
	f := tree(t, sim.Options{})
	h := hostPort(t, f, "h1", false)
	for _, tt := range []struct {
		name string
		port ib.PortNum
	}{{"h1", 1}, {"leaf1", 1}, {"nowhere", 1}, {"h2", 9}} {
		if _, err := f.HostPort(tt.name, tt.port, false); err == nil {
			t.Errorf("port %d of %s was taken", tt.port, tt.name)
		}
	}
	if _, err := f.Station("h1", false); err == nil {
		t.Error("a program has the port as well")
	}
	ask := ownSMP(mad.MethodGet, mad.AttrNodeInfo, 0)
	if !h.Ask(&ask, true) || ask.Method() != mad.MethodGetResp || ask.TID() != 0xABCD_0000_0000_0007 {
		t.Errorf("its own node answers %v, %v", ask.Method(), ask.TID())
	}
	if sminfo := ownSMP(mad.MethodGet, mad.AttrSMInfo, 0); h.Ask(&sminfo, true) {
		t.Error("the adapter answers for a subnet manager")
	}
	out := sim.HostPacket{MAD: ownSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 1), DLID: ib.PermissiveLID}
	out.MAD.SetHopPointer(1)
	h.Send(&out)
	in := make([]sim.HostPacket, 4)
	if n, err := h.Receive(in); n != 1 || err != nil || in[0].MAD.TID() != out.MAD.TID() || in[0].MAD.HopPointer() != 1 || !in[0].MAD.Returning() {
		t.Errorf("%d packets, %v: TID %v, hop pointer %d", n, err, in[0].MAD.TID(), in[0].MAD.HopPointer())
	}
	// A packet that reaches no receiver does not come back: the host has its own timeouts.
	lost := sim.HostPacket{MAD: ownSMP(mad.MethodGet, mad.AttrNodeInfo, 0, 1, 30), DLID: ib.PermissiveLID}
	lost.MAD.SetHopPointer(1)
	before := f.Stats().Received
	h.Send(&lost)
	if now := f.Stats().Received; now != before {
		t.Error("a lost request came back")
	}
	if err := f.SetFault("h1", sim.Fault{Silent: true}); err != nil {
		t.Fatal(err)
	}
	if again := ownSMP(mad.MethodGet, mad.AttrNodeInfo, 0); h.Ask(&again, false) {
		t.Error("silent firmware answers")
	}
	ended := make(chan error, 2)
	go func() { _, err := h.Receive(in); ended <- err }()
	go func() { _, err := h.Events(); ended <- err }()
	h.Close()
	for range 2 {
		if err := <-ended; !errors.Is(err, transport.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// A virtual function has no subnet management, and its driver reads the port all the same.
func TestHostPortOfFunction(t *testing.T) {
	f := tree(t, sim.Options{})
	h := hostPort(t, f, "h1", true)
	m := ownSMP(mad.MethodGet, mad.AttrPortInfo, 1)
	if h.Ask(&m, true) {
		t.Error("a function's host asks the adapter by SMP")
	}
	if m = ownSMP(mad.MethodGet, mad.AttrPortInfo, 1); !h.Ask(&m, false) {
		t.Error("a function's driver gets no PortInfo")
	}
	if h.SetIsSM(true) {
		t.Error("a function is a subnet manager")
	}
}

func TestHostPortEvents(t *testing.T) {
	f := tree(t, sim.Options{})
	h := hostPort(t, f, "h1", false)
	sm, err := f.Station("sm", false)
	if err != nil {
		t.Fatal(err)
	}
	defer sm.Close()
	set := func(change func(*mad.PortInfo)) {
		t.Helper()
		info := f.PortInfo("h1", 1)
		info.PortState, info.PortPhysicalState = ib.PortNop, ib.PhysNop
		change(&info)
		p := transport.Packet{LID: ib.PermissiveLID, MAD: ownSMP(mad.MethodSet, mad.AttrPortInfo, 1, 1, 2)}
		if err := mad.Encode(p.MAD.Data(), &info); err != nil {
			t.Fatal(err)
		}
		if in := sm.Exchange([]transport.Packet{p}, nil); len(in) != 1 || in[0].Undelivered || in[0].MAD.Status() != mad.StatusOK {
			t.Fatalf("Set of PortInfo: %d answers", len(in))
		}
	}
	for _, tt := range []struct {
		name string
		do   func()
		want []sim.PortEvent
	}{
		{"LID and SM", func() { set(func(p *mad.PortInfo) { p.LID, p.MasterSMLID = 5, 1 }) }, []sim.PortEvent{sim.LIDChanged, sim.SMChanged}},
		{"prefix", func() { set(func(p *mad.PortInfo) { p.GIDPrefix++ }) }, []sim.PortEvent{sim.GIDChanged}},
		{"reregister", func() { set(func(p *mad.PortInfo) { p.ClientReregister = true }) }, []sim.PortEvent{sim.Reregister}},
		{"active", func() {
			set(func(p *mad.PortInfo) { p.PortState = ib.PortArmed })
			set(func(p *mad.PortInfo) { p.PortState = ib.PortActive })
		}, []sim.PortEvent{sim.PortBecameActive}},
		{"bounce", func() {
			if err := f.Bounce("h1", 1); err != nil {
				t.Fatal(err)
			}
		}, []sim.PortEvent{sim.PortNoLongerActive}},
		{"P_Keys", func() {
			p := transport.Packet{LID: ib.PermissiveLID, MAD: ownSMP(mad.MethodSet, mad.AttrPKeyTable, 0, 1, 2)}
			copy(p.MAD.Data(), []byte{0xFF, 0xFF, 0x80, 0x05})
			sm.Exchange([]transport.Packet{p}, nil)
		}, []sim.PortEvent{sim.PKeyChanged}},
	} {
		tt.do()
		if got, err := h.Events(); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v, want %v", tt.name, got, err, tt.want)
		}
	}
	if !h.MaySend(0x8005) || h.MaySend(0x0005) || h.MaySend(0x8006) {
		t.Error("the port sends P_Keys that are not in its table, or not those that are")
	}
}
