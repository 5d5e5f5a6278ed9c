package sim_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport"
)

func TestPort(t *testing.T) {
	f := tree(t, sim.Options{})
	p, err := f.Attach("h1", true)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.GUID(), ib.GUID(0x0020000000000101); got != want {
		t.Errorf("GUID %v, want %v", got, want)
	}
	if err := p.SetIsSM(true); err != nil || !f.PortInfo("h1", 1).CapabilityMask.Has(mad.IsSM) {
		t.Errorf("SetIsSM: %v, capabilities %v", err, f.PortInfo("h1", 1).CapabilityMask)
	}
	out := make([]transport.Packet, 5)
	for i := range out {
		out[i] = directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo, TID: ib.TID(i)}, 1)
	}
	if n, err := p.Send(out); n != len(out) || err != nil {
		t.Fatalf("Send: %d, %v", n, err)
	}
	in := make([]transport.Packet, 3)
	for next, want := uint32(0), []int{3, 2}; len(want) > 0; want = want[1:] {
		n, err := p.Receive(in)
		if n != want[0] || err != nil {
			t.Fatalf("Receive: %d, %v; want %d", n, err, want[0])
		}
		for i := range n {
			if uint32(in[i].MAD.TID()) != next {
				t.Errorf("answer %d has TID %v", next, in[i].MAD.TID())
			}
			next++
		}
	}

	woken := make(chan error, 1)
	go func() {
		_, err := p.Receive(in)
		woken <- err
	}()
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-woken; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Receive: %v", err)
	}
	if _, err := p.Send(out); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Send: %v", err)
	}
	if f.PortInfo("h1", 1).CapabilityMask.Has(mad.IsSM) {
		t.Error("the IsSM bit outlived its SM")
	}
}

func TestPortReceivesWhatOthersCause(t *testing.T) {
	f := tree(t, sim.Options{})
	p, err := f.Attach("sm", true)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := station(t, f, "h1", false)
	go s.Send(directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo}, 1, 1))
	in := make([]transport.Packet, 1)
	if n, err := p.Receive(in); n != 1 || err != nil || in[0].MAD.Attr() != mad.AttrSMInfo {
		t.Errorf("Receive: %d, %v, %v", n, err, in[0].MAD.Attr())
	}
}

// perf is a request of the performance management class for a port.
func perf(lid ib.LID, method mad.Method, attr mad.AttrID, port byte, selected uint16) transport.Packet {
	p := transport.Packet{LID: lid, QP: 1}
	p.MAD.SetHeader(mad.Header{Class: mad.ClassPerf, ClassVersion: 1, Method: method, Attr: attr})
	p.MAD[65] = port
	binary.BigEndian.PutUint16(p.MAD[66:], selected)
	return p
}

func TestPerfCounters(t *testing.T) {
	const portCounters, xmitPkts = 0x12, 64 + 32
	f := tree(t, sim.Options{})
	s := station(t, f, "sm", false)
	forward(t, s)
	activate(t, s)
	read := func(method mad.Method, port byte, selected uint16) uint32 {
		in := only(t, s, perf(3, method, portCounters, port, selected))
		if in.Undelivered || in.MAD.Status() != mad.StatusOK || in.QP != 1 {
			t.Fatalf("PortCounters: undelivered %v, %v", in.Undelivered, in.MAD.Status())
		}
		return binary.BigEndian.Uint32(in.MAD[xmitPkts:])
	}
	before := read(mad.MethodGet, 2, 0)
	only(t, s, directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 1, 2))
	if got := read(mad.MethodGet, 2, 0) - before; got != 1 {
		t.Errorf("one packet was counted as %d", got)
	}
	if all, one := read(mad.MethodGet, 255, 0), read(mad.MethodGet, 2, 0); all <= one {
		t.Errorf("all ports sent %d packets, port 2 alone %d", all, one)
	}
	if got := read(mad.MethodSet, 2, 1<<14); got != 0 {
		t.Errorf("%d packets after a reset", got)
	}
	if in := only(t, s, perf(3, mad.MethodGet, portCounters, 77, 0)); in.MAD.Status() != mad.StatusInvalidField {
		t.Errorf("counters of a port that is not there: %v", in.MAD.Status())
	}
	if in := only(t, s, perf(3, mad.MethodGet, 0x1D, 2, 0)); in.MAD.Status() != mad.StatusOK {
		t.Errorf("extended counters: %v", in.MAD.Status())
	}
	if in := only(t, s, perf(3, mad.MethodGet, 0x77, 2, 0)); in.MAD.Status() != mad.StatusUnsupportedMethodAttr {
		t.Errorf("unknown attribute: %v", in.MAD.Status())
	}
	if in := only(t, s, perf(3, mad.MethodGet, mad.AttrClassPortInfo, 0, 0)); binary.BigEndian.Uint16(in.MAD[66:]) != 0x0300 {
		t.Errorf("ClassPortInfo: %x", in.MAD[64:80])
	}
}

// FuzzAgent feeds a fabric any MAD: it must neither panic nor answer more than
// once.
func FuzzAgent(f *testing.F) {
	for _, attr := range []mad.AttrID{
		mad.AttrNodeInfo, mad.AttrPortInfo, mad.AttrPKeyTable, mad.AttrVLArbitration, mad.AttrSLtoVLMappingTable,
		mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable, mad.AttrGUIDInfo, mad.AttrSwitchInfo, mad.AttrSMInfo, mad.AttrNotice,
	} {
		for _, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
			p := directed(mad.Header{Method: method, Attr: attr, Mod: 1}, 1)
			f.Add(p.MAD[:], uint16(p.LID))
		}
	}
	for _, lid := range []ib.LID{2, 3} {
		p := directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrNodeInfo}, 4, 2)
		p.MAD.SetDrSLID(1)
		p.MAD.SetDrDLID(lid)
		f.Add(p.MAD[:], uint16(3))
	}
	counters := perf(1, mad.MethodSet, 0x12, 255, 0xFFFF)
	f.Add(counters.MAD[:], uint16(1))
	for _, c := range keyClasses {
		k, _ := mad.LookupKeyClass(c)
		for _, attr := range []mad.AttrID{k.KeyAttr, mad.AttrClassPortInfo, mad.N2NAttrNeighborsInfo, mad.VSAttrConfigSpaceAccess, mad.CCAttrCASetting} {
			p := gmp(3, c, mad.MethodSet, attr, 0, 1)
			f.Add(p.MAD[:], uint16(3))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, lid uint16) {
		fabric := tree(t, sim.Options{Device: sim.Modern()})
		s := station(t, fabric, "sm", true)
		forward(t, s)
		p := transport.Packet{LID: ib.LID(lid)}
		copy(p.MAD[:], data)
		s.Take(nil)
		if got := s.Exchange([]transport.Packet{p}, nil); len(got) > 4 {
			t.Errorf("%d packets came of one", len(got))
		}
	})
}

// BenchmarkSMP measures the cost of the simulator in a test of the SM core.
func BenchmarkSMP(b *testing.B) {
	f := tree(b, sim.Options{})
	s := station(b, f, "sm", false)
	p := []transport.Packet{directed(mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo, Mod: 2}, 1, 3)}
	var got []transport.Packet
	b.ReportAllocs()
	for b.Loop() {
		got = s.Exchange(p, got[:0])
	}
	if len(got) != 1 {
		b.Fatal("no answer")
	}
}
