package shadow

import (
	"math/rand/v2"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// judge is a real port that fails a test on anything but a Get of subnet management, and answers as a CA does.
type judge struct {
	t    *testing.T
	out  []transport.Packet
	info mad.PortInfo
}

func (j *judge) Send(p []transport.Packet) (int, error) {
	for i := range p {
		m := &p[i].MAD
		if m.Class() != mad.ClassSubnDR || m.Method() != mad.MethodGet || p[i].QP != 0 || p[i].LID != ib.PermissiveLID {
			j.t.Errorf("%v %v of class %v is sent to LID %v, QP %d", m.Method(), m.Attr(), m.Class(), p[i].LID, p[i].QP)
		}
		for _, b := range m.Data() {
			if b != 0 {
				j.t.Fatalf("a Get of %v has content", m.Attr())
			}
		}
		answer := *m
		answer.Respond(mad.StatusOK)
		answer.SetReturning(true)
		switch m.Attr() {
		case mad.AttrNodeInfo:
			mad.MustEncode(answer.Data(), &mad.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: 0x10, PortGUID: 0x11, LocalPortNum: 1, PartitionCap: 64})
		case mad.AttrPortInfo:
			mad.MustEncode(answer.Data(), &j.info)
		default:
		}
		j.out = append(j.out, transport.Packet{MAD: answer, LID: ib.PermissiveLID})
	}
	return len(p), nil
}

func (j *judge) Receive(p []transport.Packet) (int, error) {
	if len(j.out) == 0 {
		return 0, transport.ErrClosed
	}
	n := copy(p, j.out)
	j.out = j.out[n:]
	return n, nil
}

func (j *judge) SetIsSM(bool) error {
	j.t.Error("the port is announced")
	return nil
}
func (j *judge) GUID() ib.GUID { return 0x11 }
func (j *judge) Close() error  { return nil }

// ask sends a request of a Subnet Manager, and returns the answer.
func ask(t *testing.T, p *Port, tid uint32, method mad.Method, attr mad.AttrID, data func([]byte)) (*mad.MAD, bool) {
	t.Helper()
	var packet transport.Packet
	mad.NewSMP(&packet.MAD, mad.Header{Method: method, TID: ib.TID(tid), Attr: attr}, &mad.Route{}, ib.MKey{})
	if data != nil {
		data(packet.MAD.Data())
	}
	if n, err := p.Send([]transport.Packet{packet}); n != 1 || err != nil {
		t.Fatalf("%d were sent, %v", n, err)
	}
	in := make([]transport.Packet, 1)
	n, err := p.Receive(in)
	return &in[0].MAD, n == 1 && err == nil
}

// TestNothingIsWritten: whatever a Subnet Manager sends, only Gets without content get out.
func TestNothingIsWritten(t *testing.T) {
	t.Parallel()
	p := New(&judge{t: t}, Options{})
	if err := p.SetIsSM(true); err != nil {
		t.Fatal(err)
	}
	ask(t, p, 1, mad.MethodGet, mad.AttrNodeInfo, nil)
	r := rand.New(rand.NewPCG(1, 2))
	classes := []mad.Class{mad.ClassSubn, mad.ClassSubnDR, mad.ClassSubnAdm, mad.ClassPerf, mad.ClassCongestionControl}
	for range 20_000 {
		packet := transport.Packet{LID: ib.LID(r.Uint32()), QP: r.Uint32N(2)}
		for i := range packet.MAD {
			packet.MAD[i] = byte(r.Uint32())
		}
		packet.MAD.SetMethod(mad.Method(r.Uint32N(256)))
		h := packet.MAD.Header()
		h.Class, h.Attr = classes[r.IntN(len(classes))], mad.AttrID(r.Uint32N(0x40))
		packet.MAD.SetHeader(h)
		if h.Class == mad.ClassSubnDR && r.IntN(2) == 0 {
			packet.MAD.SetRoute(&mad.Route{})
			packet.MAD.SetMethod([]mad.Method{mad.MethodGet, mad.MethodSet}[r.IntN(2)])
		}
		if _, err := p.Send([]transport.Packet{packet}); err != nil {
			t.Fatal(err)
		}
	}
	in := make([]transport.Packet, 64)
	for {
		if _, err := p.Receive(in); err != nil {
			break
		}
	}
	p.Report() // of whatever was written
}

// TestGetsShowWhatWasWritten: a Set is answered as a device would, later Gets show it, and the report has it.
func TestGetsShowWhatWasWritten(t *testing.T) {
	t.Parallel()
	had := mad.PortInfo{LID: 5, PortState: ib.PortActive, NeighborMTU: ib.MTU4096, OperationalVLs: 1, CapabilityMask: mad.IsSM, LocalPortNum: 1}
	p := New(&judge{t: t, info: had}, Options{})
	ask(t, p, 1, mad.MethodGet, mad.AttrNodeInfo, nil)
	want := had
	want.LID, want.PortState, want.OperationalVLs = 9, ib.PortNop, 0 // the last two change nothing
	for i, method := range []mad.Method{mad.MethodSet, mad.MethodGet} {
		m, ok := ask(t, p, uint32(2+i), method, mad.AttrPortInfo, func(b []byte) {
			if method == mad.MethodSet {
				mad.MustEncode(b, &want)
			}
		})
		var got mad.PortInfo
		if !ok || mad.Decode(m.Data(), &got) != nil || got.LID != 9 || got.PortState != ib.PortActive || got.OperationalVLs != 1 || got.CapabilityMask != 0 {
			t.Errorf("%v is answered with %+v", method, got)
		}
	}
	keys := mad.PKeyTable{PKey: [mad.PKeysPerBlock]ib.PKey{0x7FFF, 0x8001}}
	if _, ok := ask(t, p, 4, mad.MethodSet, mad.AttrPKeyTable, func(b []byte) { mad.MustEncode(b, &keys) }); !ok {
		t.Error("no answer to a Set of P_Keys")
	}
	if _, ok := ask(t, p, 5, mad.MethodSet, mad.AttrSMInfo, nil); ok {
		t.Error("a command to a Subnet Manager is answered")
	}
	r := p.Report()
	var kinds []Kind
	for _, c := range r.Changes {
		kinds = append(kinds, c.Kind)
		if c.Kind == KindLID && (!c.Noticed || c.From != "5" || c.To != "9" || c.Where.PortGUID != 0x11) {
			t.Errorf("LID: %+v", c)
		}
	}
	if len(kinds) != 3 || kinds[0] != KindLID || kinds[1] != KindPKeyGained || kinds[2] != KindPKeyGained {
		t.Errorf("changes are %v", kinds)
	}
	if len(r.Masters) != 1 || r.Sets[mad.AttrPortInfo].Changing != 1 {
		t.Errorf("managers %v, Sets %v", r.Masters, r.Sets[mad.AttrPortInfo])
	}
}

// FuzzAnswers: whatever devices answer, requests end, and there is a report.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint16(mad.AttrNodeInfo))
	f.Add([]byte{0xFF, 0x02, 0xFF, 0xFF}, uint16(mad.AttrPortInfo))
	f.Fuzz(func(t *testing.T, data []byte, attr uint16) {
		p := New(&liar{data: data}, Options{Silent: func(Silence) {}, Locked: func(Where) {}})
		attrs := []mad.AttrID{
			mad.AttrNodeInfo, mad.AttrNodeDescription, mad.AttrPortInfo, mad.AttrSwitchInfo, mad.AttrPKeyTable, mad.AttrGUIDInfo, mad.AttrSLtoVLMappingTable,
			mad.AttrLinearForwardingTable, mad.AttrMulticastForwardingTable, mad.AttrVLArbitration, mad.AttrSwitchPortStateTable, mad.AttrID(attr),
		}
		for i, a := range attrs {
			for j, r := range []mad.Route{{}, mad.MakeRoute(1), mad.MakeRoute(1, 2)} {
				for k, method := range []mad.Method{mad.MethodGet, mad.MethodSet} {
					var packet transport.Packet
					mad.NewSMP(&packet.MAD, mad.Header{Method: method, TID: ib.TID(1 + i + 100*j + 1000*k), Attr: a, Mod: uint32(attr)}, &r, ib.MKey{})
					copy(packet.MAD.Data(), data)
					if _, err := p.Send([]transport.Packet{packet}); err != nil {
						t.Fatal(err)
					}
					in := make([]transport.Packet, 2)
					_, _ = p.Receive(in) // it ends: there is an answer, or the port is closed
				}
			}
		}
		p.Report()
	})
}

// liar is a port behind which every device answers the same.
type liar struct {
	judge
	data []byte
}

func (l *liar) Send(p []transport.Packet) (int, error) {
	for i := range p {
		answer := p[i]
		answer.MAD.Respond(mad.StatusOK)
		answer.MAD.SetReturning(true)
		copy(answer.MAD.Data(), l.data)
		l.out = append(l.out, answer)
	}
	return len(p), nil
}
