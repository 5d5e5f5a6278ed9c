package sa_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/testbed"
	"portcullis/fabricsm/transport"
)

// untrustedMay lists the requests that are answered without the SA_Key, independently of package trust. FuzzAgentTake
// checks the package against it.
var untrustedMay = map[mad.AttrID][]mad.Method{
	mad.AttrClassPortInfo:  {mad.MethodGet},
	mad.AttrPathRecord:     {mad.MethodGet, mad.MethodGetTable},
	mad.AttrMCMemberRecord: {mad.MethodGet, mad.MethodSet, mad.MethodDelete},
	mad.AttrServiceRecord:  {mad.MethodGet, mad.MethodSet, mad.MethodDelete},
	mad.AttrInformInfo:     {mad.MethodSet},
}

// fuzzStep is the form of a step of FuzzAgentTake: an operation, its sender, and the fields of the packet.
type fuzzStep struct {
	Op     uint8 // low 2 bits: the key that is shown; then seconds to wait; then the GRH
	Who    uint8
	Method uint8
	Attr   uint16
	Mask   uint32
	Type   uint8
	Flags  uint8
	D1, D2 uint8
	Len    uint8 // of the data that follow
}

func (s fuzzStep) bytes(data []byte) []byte {
	s.Len = uint8(min(len(data), mad.SADataSize))
	var b bytes.Buffer
	_ = binary.Write(&b, binary.BigEndian, s)
	return append(b.Bytes(), data[:s.Len]...)
}

func encoded[T any](rec *T) []byte {
	b := make([]byte, mad.SADataSize)
	if err := mad.Encode(b, rec); err != nil {
		panic(err)
	}
	return b
}

// FuzzAgentTake passes packets made of the input to an agent on a small fabric. The size of its output is bounded, and no
// packet contains the SA_Key. A request with a wrong key gets no answer. A request without a key gets no more than the
// trust model allows. Answers go to the requester; only reports go to others.
func FuzzAgentTake(f *testing.F) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 8, Radix: 8})
	if err != nil {
		f.Fatal(err)
	}
	cfg := sa.DefaultConfig()
	cfg.Key = saKey
	s, err := testbed.New(testbed.Options{Netlist: l, SM: sm.DefaultConfig(), SA: &cfg, Seed: 7})
	if err != nil {
		f.Fatal(err)
	}
	s.Start()
	s.Grant(s.GrantOf("h1", 1, 0x8001), s.GrantOf("h2", 1, 0x8001), s.GrantOf("h3", 1, 0x8002), s.GrantOf("h4", 1, 0x0001))
	if err := s.Settle(time.Minute); err != nil {
		f.Fatal(err)
	}
	var key [8]byte
	binary.BigEndian.PutUint64(key[:], saKey.Reveal())
	sources := []ib.LID{0, 0xC001, ib.PermissiveLID, s.View().LID, 0xBFFF}
	for _, h := range []string{"h1", "h2", "h3", "h4"} {
		guid := s.GUID(h, 1)
		for _, id := range s.View().Fabric.EndPorts() {
			if p := s.View().Fabric.Port(id); p.GUID == guid {
				sources = append(sources, p.LID)
			}
		}
	}
	gid := func(h string) ib.GID { return ib.MakeGID(ib.DefaultPrefix, s.GUID(h, 1)) }
	group := encoded(&mad.MCMemberRecord{MGID: ib.GID{0xFF, 0x12, 0xA0, 0x1C, 9}, PortGID: gid("h1"), JoinState: ib.FullMember, PKey: 0x8001, QKey: 1})
	all := encoded(&mad.InformInfo{LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: mad.AllTraps, ProducerType: mad.AllProducers})
	path := encoded(&mad.PathRecord{SGID: gid("h1"), DGID: gid("h2")})
	offer := encoded(&mad.ServiceRecord{ServiceID: 7, ServiceGID: gid("h1"), ServicePKey: 0x8001, ServiceLease: 3})
	seed := func(steps ...[]byte) { f.Add(bytes.Join(steps, nil)) }
	seed(
		fuzzStep{Who: 6, Method: uint8(mad.MethodSet), Attr: uint16(mad.AttrInformInfo)}.bytes(all),
		fuzzStep{Who: 5, Method: uint8(mad.MethodSet), Attr: uint16(mad.AttrMCMemberRecord), Mask: uint32(mad.MCMemberCreate)}.bytes(group),
		fuzzStep{Who: 6, Op: 4, Method: uint8(mad.MethodReportResp), Attr: uint16(mad.AttrNotice)}.bytes(nil),
		fuzzStep{Who: 5, Op: 40, Method: uint8(mad.MethodDelete), Attr: uint16(mad.AttrMCMemberRecord), Mask: uint32(mad.MCMemberCreate)}.bytes(group),
	)
	seed(
		fuzzStep{Who: 5, Method: uint8(mad.MethodGet), Attr: uint16(mad.AttrPathRecord), Mask: uint32(mad.PathComponentSGID | mad.PathComponentDGID)}.bytes(path),
		fuzzStep{Who: 5, Op: 1, Method: uint8(mad.MethodGetTable), Attr: uint16(mad.AttrNodeRecord)}.bytes(nil),
		fuzzStep{Who: 5, Op: 1, Method: uint8(mad.MethodGetTable), Attr: uint16(mad.AttrNodeRecord), Type: uint8(mad.RMPPAck), Flags: 1, D1: 1, D2: 65}.bytes(nil),
		fuzzStep{Who: 5, Op: 2, Method: uint8(mad.MethodGetTable), Attr: uint16(mad.AttrNodeRecord)}.bytes(nil),
	)
	seed(
		fuzzStep{Who: 5, Method: uint8(mad.MethodSet), Attr: uint16(mad.AttrServiceRecord), Mask: 0x1F}.bytes(offer),
		fuzzStep{Who: 6, Op: 20, Method: uint8(mad.MethodGet), Attr: uint16(mad.AttrServiceRecord)}.bytes(offer),
		fuzzStep{Who: 5, Op: 1, Method: uint8(mad.MethodGetMulti), Attr: uint16(mad.AttrMultiPathRecord), Type: 1, Flags: 7, D1: 1, D2: 220, Mask: 0xFFFFFF}.bytes(path),
		fuzzStep{Who: 8, Op: 0xC0, Method: uint8(mad.MethodGet), Attr: uint16(mad.AttrPathRecord), Mask: uint32(mad.PathComponentDGID)}.bytes(path),
	)
	size := binary.Size(fuzzStep{})
	f.Fuzz(func(t *testing.T, in []byte) {
		if bytes.Contains(in, key[:]) {
			return // a sender with the key may see its own data again
		}
		a, err := sa.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		now := testbed.Epoch.Add(s.Now())
		var out sa.Output
		a.Look(now, a.Sight(nil, s.View()), &out)
		for steps := 0; len(in) >= size && steps < 64; steps++ {
			var step fuzzStep
			_ = binary.Read(bytes.NewReader(in), binary.BigEndian, &step)
			in = in[size:]
			p := transport.Packet{LID: sources[int(step.Who)%len(sources)], QP: 1}
			m := &p.MAD
			m.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.Method(step.Method), TID: ib.TID(1 + step.D1&1), Attr: mad.AttrID(step.Attr)})
			m.SetComponentMask(mad.ComponentMask(step.Mask))
			m.SetRMPPHeader(mad.RMPPHeader{Version: mad.RMPPVersion, Type: mad.RMPPType(step.Type), Flags: mad.RMPPFlags(step.Flags), Data1: uint32(step.D1), Data2: uint32(step.D2)})
			n := copy(m.SAData(), in[:min(int(step.Len), len(in))])
			in = in[n:]
			wrong := step.Op&3 == 2
			switch step.Op & 3 {
			case 1:
				m.SetSAKey(saKey)
			case 2:
				m.SetSAKey(ib.NewSAKey(saKey.Reveal() ^ 1<<(step.D1%64)))
			}
			if step.Op&0xC0 != 0 {
				p.GRH = transport.GRH{Present: true, GID: []ib.GID{gid("h1"), gid("h2"), {0xFF, 0x12}, ib.MakeGID(1, 2)}[step.Op>>6]}
			}
			now = now.Add(time.Duration(step.Op>>2&15) * 300 * time.Millisecond)
			out.Reset()
			a.Expire(now, &out)
			checkOutput(t, &out, key[:], nil)
			out.Reset()
			a.Take(now, &p, &out)
			checkOutput(t, &out, key[:], &p)
			continues := m.RMPPFlags().Has(mad.RMPPActive) && m.RMPPType() >= mad.RMPPAck && m.RMPPType() <= mad.RMPPAbort
			if m.IsResponse() || continues {
				continue
			}
			answers := slices.DeleteFunc(slices.Concat(out.Send, out.Held), func(o transport.Packet) bool { return o.MAD.Method() == mad.MethodReport })
			allowed := slices.Contains(untrustedMay[m.Attr()], m.Method())
			if len(answers) > 0 && (wrong || step.Op&3 != 1 && !allowed || step.Who%9 < 3) {
				t.Fatalf("%v of 0x%04x by LID %v, key %d, is answered with %v", m.Method(), step.Attr, p.LID, step.Op&3, answers[0].MAD.Status())
			}
		}
	})
}

// checkOutput checks the bounds of the output of an agent, after a packet or some time.
func checkOutput(t *testing.T, out *sa.Output, key []byte, p *transport.Packet) {
	t.Helper()
	if n := len(out.Send) + len(out.Held); n > 1024 || len(out.Save) > 1024 || len(out.Events) > 1024 {
		t.Fatalf("%d packets, %d facts, %d events", n, len(out.Save), len(out.Events))
	}
	for _, f := range out.Save {
		if f.Kind == "" || f.Name == "" {
			t.Fatalf("a fact of kind %q, name %q", f.Kind, f.Name)
		}
	}
	for _, o := range slices.Concat(out.Send, out.Held) {
		if bytes.Contains(o.MAD[:], key) {
			t.Fatal("the SA_Key is in an answer")
		}
		if p != nil && o.MAD.Method() != mad.MethodReport && (o.LID != p.LID || o.QP != p.QP) {
			t.Fatalf("an answer to LID %v goes to %v", p.LID, o.LID)
		}
	}
}
