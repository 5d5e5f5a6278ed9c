package pcap

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport"
	"portcullis/packaging/testenv"
)

var (
	began = time.Unix(1_700_000_000, 123_456_789)
	ours  = End{
		LID: 8, GIDs: []ib.GID{ib.MakeGID(ib.DefaultPrefix, 0x0020000000000001)},
		PKeys: []ib.PKey{ib.DefaultPKeyFull, 0x8005},
	}
	host = ib.MakeGID(ib.DefaultPrefix, 0x0020000000000101)
)

// The example of the standard (IBTA volume 1, 7.8.3).
func TestChecksums(t *testing.T) {
	const packet = "7012375c000e17d20a2024870087b1b3000dec2a01710a1c015d400238f27a050000000ebb884d85fd5cfba4728bc0690ed40000"
	var b [maxFrame]byte
	n, err := hex.Decode(b[:], []byte(packet))
	if err != nil {
		t.Fatal(err)
	}
	if n = checksums(&b, n, lrhSize); hex.EncodeToString(b[:n]) != packet+"9625b75a"+"45fa" {
		t.Errorf("got %x", b[:n])
	}
}

// Fields that routers change do not affect the invariant CRC, and other fields do.
func TestInvariant(t *testing.T) {
	p := question(1)
	p.GRH = transport.GRH{Present: true, HopLimit: 64, TrafficClass: 3, FlowLabel: 5, GID: host}
	crc := func(p transport.Packet) string {
		var b [maxFrame]byte
		n := ours.frame(&b, &p, false)
		return hex.EncodeToString(b[n-vcrcSize-icrcSize : n-vcrcSize])
	}
	want := crc(p)
	for name, change := range map[string]func(p *transport.Packet){
		"source LID":    func(p *transport.Packet) { p.LID++ },
		"service level": func(p *transport.Packet) { p.SL++ },
		"hop limit":     func(p *transport.Packet) { p.GRH.HopLimit-- },
		"traffic class": func(p *transport.Packet) { p.GRH.TrafficClass++ },
		"flow label":    func(p *transport.Packet) { p.GRH.FlowLabel++ },
	} {
		q := p
		if change(&q); crc(q) != want {
			t.Errorf("the CRC depends on %s", name)
		}
	}
	for name, change := range map[string]func(p *transport.Packet){
		"source GID": func(p *transport.Packet) { p.GRH.GID[15]++ },
		"payload":    func(p *transport.Packet) { p.MAD[200]++ },
		"P_Key":      func(p *transport.Packet) { p.PKeyIndex++ },
	} {
		q := p
		if change(&q); crc(q) == want {
			t.Errorf("the CRC does not depend on %s", name)
		}
	}
}

func question(tid ib.TID) transport.Packet {
	p := transport.Packet{LID: 5, QP: 1, PKeyIndex: 1, SL: 2}
	p.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGet, Attr: mad.AttrPathRecord, TID: tid})
	return p
}

// mark is in every key of a test's packets.
const mark = 0x5EC2E75EC2E75EC2

// record is a MAD of subnet administration with a record.
func record[T any](t *testing.T, method mad.Method, attr mad.AttrID, v T) transport.Packet {
	t.Helper()
	p := question(0x77)
	p.MAD.SetMethod(method)
	p.MAD.SetAttr(attr)
	p.MAD.SetSAKey(ib.NewSAKey(mark))
	if err := mad.Encode(p.MAD.SAData(), &v); err != nil {
		t.Fatal(err)
	}
	return p
}

// segments cuts a table into the segments of an answer.
func segments[T any](t *testing.T, attr mad.AttrID, records []T) (all []transport.Packet) {
	t.Helper()
	each := mad.RecordSize(attr)
	table := make([]byte, each*len(records))
	for i := range records {
		if err := mad.Encode(table[i*each:], &records[i]); err != nil {
			t.Fatal(err)
		}
	}
	count := (len(table) + mad.SADataSize - 1) / mad.SADataSize
	for i := range count {
		p := question(0x99)
		p.MAD.SetMethod(mad.MethodGetTableResp)
		p.MAD.SetAttr(attr)
		p.MAD.SetAttributeOffset(mad.AttributeOffset(attr))
		h := mad.RMPPHeader{Version: mad.RMPPVersion, Type: mad.RMPPData, Flags: mad.RMPPActive, Data1: uint32(i + 1)}
		n := copy(p.MAD.SAData(), table[i*mad.SADataSize:])
		if i == 0 {
			h.Flags |= mad.RMPPFirst
			h.Data2 = uint32(len(table) + count*mad.SAHeaderSize)
		}
		if i == count-1 {
			h.Flags |= mad.RMPPLast
			h.Data2 = uint32(n + mad.SAHeaderSize)
		}
		p.MAD.SetRMPPHeader(h)
		all = append(all, p)
	}
	return all
}

func smp[T any](t *testing.T, method mad.Method, attr mad.AttrID, v T, route ...ib.PortNum) transport.Packet {
	t.Helper()
	p := transport.Packet{LID: ib.PermissiveLID}
	r := mad.MakeRoute(route...)
	way := &r
	if len(route) == 0 {
		p.LID, way = 5, nil
	}
	mad.NewSMP(&p.MAD, mad.Header{Method: method, Attr: attr, TID: 0x42}, way, ib.NewMKey(mark))
	if err := mad.Encode(p.MAD.Data(), &v); err != nil {
		t.Fatal(err)
	}
	return p
}

// tshark reads a capture. Wireshark has a dissector for InfiniBand, but does not know
// link type 247 as of version 4.0; so it is shown a type for private use, with that
// dissector.
func tshark(t *testing.T, file string, args ...string) string {
	t.Helper()
	const private = 147
	b, err := os.ReadFile(file)
	if err != nil || len(b) < fileHeaderSize || b[20] != linkInfiniBand {
		t.Fatalf("%v, %d bytes, link type %d", err, len(b), b[20])
	}
	b[20] = private
	file = filepath.Join(t.TempDir(), "private.pcap")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd := exec.CommandContext(t.Context(), testenv.Program(t, "tshark"), append([]string{
		"-r", file, "-n", "-o", `uat:user_dlts:"User 0 (DLT=147)","infiniband","0","","0",""`,
	}, args...)...)
	cmd.Stderr = &complaints
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark: %v\n%s", err, complaints.String())
	}
	return string(out)
}

// fields are some fields of every packet, a line each.
func fields(t *testing.T, file, filter string, names ...string) []string {
	t.Helper()
	args := []string{"-Y", filter, "-T", "fields", "-E", "separator=/s"}
	for _, n := range names {
		args = append(args, "-e", n)
	}
	out := strings.TrimRight(tshark(t, file, args...), "\n")
	if out == "" {
		return nil
	}
	return strings.Split(out, "\n")
}

// faults are those of packets. Of segments but the first only that they are malformed: the
// dissector takes each for a record of its own, and finds text where none is.
const faults = "_ws.malformed or _ws.expert and not infiniband.rmpp.segmentnumber > 1"

// Wireshark's dissector reads the sent packets from captures.
func TestDissected(t *testing.T) {
	testenv.Program(t, "tshark")
	path := mad.PathRecord{DGID: host, SGID: ours.GIDs[0], DLID: 0x1234, SLID: 8, PKey: 0x8005, NumbPath: 1, SL: 3}
	far := record(t, mad.MethodGetResp, mad.AttrPathRecord, path)
	far.GRH = transport.GRH{Present: true, HopLimit: 63, TrafficClass: 0x11, FlowLabel: 0x12345, GID: host}
	group := mad.MCMemberRecord{MGID: ib.GID{0xFF, 0x12, 0x40, 0x1B, 15: 1}, PortGID: host, QKey: 0x0B1B, MLID: 0xC003, PKey: 0x8005, JoinState: 1}
	var nodes []mad.NodeRecord
	var ports []mad.PortInfoRecord
	for i := range 5 {
		nodes = append(nodes, mad.NodeRecord{LID: ib.LID(i + 1), NodeDescription: mad.MakeNodeDescription(fmt.Sprintf("node-%d", i))})
		ports = append(ports, mad.PortInfoRecord{EndportLID: ib.LID(i + 1), PortNum: 3, PortInfo: mad.PortInfo{MKey: ib.NewMKey(mark), LID: ib.LID(i + 1)}})
	}
	ack := question(0x99)
	ack.MAD.SetMethod(mad.MethodGetTable)
	ack.MAD.SetAttr(mad.AttrNodeRecord)
	ack.MAD.SetRMPPHeader(mad.RMPPHeader{Version: mad.RMPPVersion, Type: mad.RMPPAck, Flags: mad.RMPPActive, Data1: 1, Data2: 9})
	trap := smp(t, mad.MethodTrap, mad.AttrNotice, mad.Trap256{
		NoticeHeader: mad.NoticeHeader{IsGeneric: true, Type: mad.NoticeSecurity, ProducerType: mad.ProducerSwitch, TrapNumber: mad.TrapBadMKey, IssuerLID: 5},
		LID:          5, MKey: ib.NewMKey(mark),
	})

	file := filepath.Join(t.TempDir(), "c.pcap")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := NewWriter(f, 1<<20, func(err error) { t.Error(err) })
	w.SetEnd(ours)
	lost := question(1)
	lost.Undelivered = true
	w.Sent(began, []transport.Packet{
		smp(t, mad.MethodGet, mad.AttrNodeInfo, mad.NodeInfo{}, 1, 7),
		smp(t, mad.MethodSet, mad.AttrPortInfo, mad.PortInfo{MKey: ib.NewMKey(mark), LID: 0x2345}),
		smp(t, mad.MethodGet, mad.AttrSMInfo, mad.SMInfo{SMKey: ib.NewSMKey(mark)}),
	})
	w.Received(began.Add(time.Millisecond), []transport.Packet{
		trap, lost,
		record(t, mad.MethodGet, mad.AttrPathRecord, path),
		record(t, mad.MethodSet, mad.AttrMCMemberRecord, group),
		ack,
	})
	w.Sent(began.Add(2*time.Millisecond), slices.Concat(
		[]transport.Packet{far},
		segments(t, mad.AttrNodeRecord, nodes),
		segments(t, mad.AttrPortInfoRecord, ports),
	))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	whole := tshark(t, file, "-V")
	for _, bad := range []string{"Malformed", "malformed", "5ec2"} {
		for line := range strings.Lines(whole) {
			if strings.Contains(line, bad) {
				t.Errorf("tshark says %s", strings.TrimSpace(line))
			}
		}
	}
	if got := fields(t, file, faults, "frame.number", "_ws.expert.message"); len(got) != 0 {
		t.Errorf("tshark finds faults with packets %v", got)
	}
	const lids = "infiniband.lrh.slid"
	for _, tt := range []struct {
		filter string
		fields []string
		want   []string
	}{
		{
			"infiniband.mad.mgmtclass == 0x81",
			[]string{"frame.time_epoch", lids, "infiniband.lrh.dlid", "infiniband.lrh.vl", "infiniband.deth.srcqp", "infiniband.mad.attributeid"},
			[]string{"1700000000.123456789 65535 65535 0x0f 0x00000000 0x0011"},
		},
		{
			"infiniband.mad.mgmtclass == 0x01",
			[]string{lids, "infiniband.lrh.dlid", "infiniband.mad.method", "infiniband.mad.attributeid", "infiniband.bth.p_key", "infiniband.smplid.mkey"},
			[]string{
				"8 5 0x02 0x0015 65535 0x0000000000000000",
				"8 5 0x01 0x0020 65535 0x0000000000000000",
				"5 8 0x05 0x0002 65535 0x0000000000000000",
			},
		},
		{
			"infiniband.portinfo.lid and not infiniband.rmpp.segmentnumber > 1",
			[]string{"infiniband.portinfo.lid", "infiniband.portinfo.m_key"},
			[]string{
				"0x2345 0x0000000000000000",
				"0x0001 0x0000000000000000",
			},
		},
		{
			"infiniband.pathrecord.dgid",
			[]string{lids, "infiniband.lrh.sl", "infiniband.bth.p_key", "infiniband.deth.q_key", "infiniband.pathrecord.dgid", "infiniband.pathrecord.dlid", "infiniband.pathrecord.p_key", "infiniband.sa.smkey"},
			[]string{
				"5 2 32773 0x0000000080010000 fe80::20:0:0:101 0x1234 0x8005 0x0000000000000000",
				"8 2 32773 0x0000000080010000 fe80::20:0:0:101 0x1234 0x8005 0x0000000000000000",
			},
		},
		{
			"infiniband.grh",
			[]string{"infiniband.grh.sgid", "infiniband.grh.dgid", "infiniband.grh.tclass", "infiniband.grh.flowlabel", "infiniband.grh.hoplmt", "infiniband.grh.paylen"},
			[]string{
				"fe80::20:0:0:1 fe80::20:0:0:101 17 74565 63 280",
			},
		},
		{
			"infiniband.mcmemberrecord.mgid",
			[]string{lids, "infiniband.mad.method", "infiniband.mcmemberrecord.mgid", "infiniband.mcmemberrecord.q_key", "infiniband.mcmemberrecord.mlid", "infiniband.mcmemberrecord.joinstate"},
			[]string{
				"5 0x02 ff12:401b::1 0x00000b1b 0xc003 0x01",
			},
		},
		{
			"infiniband.rmpp.rmpptype != 0",
			[]string{"infiniband.mad.method", "infiniband.mad.attributeid", "infiniband.rmpp.rmpptype", "infiniband.rmpp.rmppflags", "infiniband.rmpp.segmentnumber", "infiniband.rmpp.payloadlength", "infiniband.rmpp.newwindowlast", "infiniband.sa.attributeoffset"},
			[]string{
				"0x12 0x0011 0x02 0x01 0x00000001  0x00000009 0x0000",
				"0x92 0x0011 0x01 0x03 0x00000001 0x0000026c  0x000e",
				"0x92 0x0011 0x01 0x01 0x00000002 0x00000000  0x000e",
				"0x92 0x0011 0x01 0x05 0x00000003 0x000000b4  0x000e",
				"0x92 0x0012 0x01 0x03 0x00000001 0x00000190  0x0009",
				"0x92 0x0012 0x01 0x05 0x00000002 0x000000b4  0x0009",
			},
		},
	} {
		if d := cmp.Diff(fields(t, file, tt.filter, tt.fields...), tt.want); d != "" {
			t.Errorf("%s: -got +want:\n%s", tt.filter, d)
		}
	}
}

func TestLimit(t *testing.T) {
	var out bytes.Buffer
	var ends []error
	one := packetHeaderSize + maxFrame - grhSize
	w := NewWriter(&out, int64(fileHeaderSize+2*one), func(err error) { ends = append(ends, err) })
	w.Sent(began, []transport.Packet{question(1), question(2), question(3), question(4)})
	w.Received(began, []transport.Packet{question(5)})
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if len(ends) != 1 || !errors.Is(ends[0], ErrFull) || out.Len() != fileHeaderSize+2*one {
		t.Errorf("%d bytes, ended by %v", out.Len(), ends)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }

// A disk that fails ends the capture and nothing else.
func TestBroken(t *testing.T) {
	var ends []error
	w := NewWriter(broken{}, 1<<30, func(err error) { ends = append(ends, err) })
	for i := range 1000 {
		w.Sent(began.Add(time.Duration(i)*time.Second), []transport.Packet{question(1)})
	}
	if len(ends) != 1 || !errors.Is(ends[0], errors.ErrUnsupported) {
		t.Errorf("ended by %v", ends)
	}
	w = NewWriter(broken{}, 1<<30, nil)
	if err := w.Close(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Close: %v", err)
	}
}

// A captured port works like the port, in both lanes.
func TestCapture(t *testing.T) {
	list, err := netlist.Single(netlist.Shape{Hosts: 2, Radix: 4})
	if err != nil {
		t.Fatal(err)
	}
	under, err := sim.New(list).Attach("sm", true)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := NewWriter(&out, 1<<20, nil)
	p := Capture(under, w)
	defer p.Close()
	if _, ok := p.(transport.Poller); ok {
		t.Error("it can be polled, and the port cannot")
	}
	sa, err := p.(transport.Laned).SA()
	if err != nil {
		t.Fatal(err)
	}
	in := make([]transport.Packet, 1)
	ask := smp(t, mad.MethodGet, mad.AttrNodeInfo, mad.NodeInfo{}, 1)
	if n, err := p.Send([]transport.Packet{ask}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if n, err := p.Receive(in); n != 1 || err != nil || in[0].MAD.Method() != mad.MethodGetResp {
		t.Fatal(n, err)
	}
	if n, err := sa.TrySend([]transport.Packet{question(1)}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if err := errors.Join(sa.Wait(), sa.Pause(0)); err != nil {
		t.Fatal(err)
	}
	if n, err := sa.TryReceive(in); n != 1 || err != nil || !in[0].Undelivered || sa.Dropped() != 0 {
		t.Fatal(n, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if want := fileHeaderSize + 3*(packetHeaderSize+maxFrame-grhSize); out.Len() != want {
		t.Errorf("captured %d bytes, want %d", out.Len(), want)
	}
	if _, err := Capture(struct{ transport.Port }{under}, w).(transport.Laned).SA(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without lanes: %v", err)
	}
}

func FuzzFrame(f *testing.F) {
	m := question(1).MAD
	f.Add(m[:], uint16(1), uint32(1), true, true)
	f.Fuzz(func(t *testing.T, b []byte, lid uint16, qp uint32, grh, sent bool) {
		p := transport.Packet{LID: ib.LID(lid), QP: qp & 0xFFFFFF, PKeyIndex: lid, PathBits: uint8(qp), GRH: transport.GRH{Present: grh, GIDIndex: uint8(lid), FlowLabel: qp}}
		copy(p.MAD[:], b)
		var frame [maxFrame]byte
		n := ours.frame(&frame, &p, sent)
		want := maxFrame
		if !grh {
			want -= grhSize
		}
		if n != want || int(frame[4])<<8|int(frame[5]) != (n-vcrcSize)/4 {
			t.Errorf("%d bytes, length field %x", n, frame[4:6])
		}
	})
}
