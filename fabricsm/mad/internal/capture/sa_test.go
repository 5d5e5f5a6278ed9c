package capture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/packaging/testenv"
)

// question is what we take a tool to ask: its bytes must be those that we make of it.
type question struct {
	method mad.Method
	attr   mad.AttrID
	mod    uint32
	mask   mad.ComponentMask
	key    uint64
	record any // pointer to the record asked by; nil: zeros
}

// query is a call of saquery, and its requests.
type query struct {
	args string
	asks []question
}

func table(a mad.AttrID, mask mad.ComponentMask, record any) question {
	return question{method: mad.MethodGetTable, attr: a, mask: mask, record: record}
}

var (
	askCPI   = question{method: mad.MethodGet, attr: mad.AttrClassPortInfo}
	allPaths = mad.PathComponentServiceID8MSB | mad.PathComponentServiceID56LSB | mad.PathComponentSGID | mad.PathComponentDGID |
		mad.PathComponentSLID | mad.PathComponentDLID | mad.PathComponentFlowLabel | mad.PathComponentHopLimit | mad.PathComponentTClass |
		mad.PathComponentReversible | mad.PathComponentNumbPath | mad.PathComponentPKey | mad.PathComponentQoSClass | mad.PathComponentSL |
		mad.PathComponentMTUSelector | mad.PathComponentMTU | mad.PathComponentRateSelector | mad.PathComponentRate |
		mad.PathComponentPacketLifeTimeSelector | mad.PathComponentPacketLifeTime
	allGroups = mad.MCMemberComponentProxyJoin - 1
)

// queries are asked at node "sm", LID 1.
var queries = []query{
	{"-c", []question{askCPI}},
	{"NR", []question{table(mad.AttrNodeRecord, 0, nil)}},
	{"NR 1", []question{table(mad.AttrNodeRecord, mad.NodeComponentLID, &mad.NodeRecord{LID: 1})}},
	{"NR 3", []question{table(mad.AttrNodeRecord, mad.NodeComponentLID, &mad.NodeRecord{LID: 3})}},
	{"PIR 1/1", []question{table(mad.AttrPortInfoRecord, mad.PortInfoComponentEndportLID|mad.PortInfoComponentPortNum, &mad.PortInfoRecord{EndportLID: 1, PortNum: 1})}},
	{"PIR 3/2/128", []question{table(mad.AttrPortInfoRecord, mad.PortInfoComponentEndportLID|mad.PortInfoComponentPortNum|mad.PortInfoComponentOptions,
		&mad.PortInfoRecord{EndportLID: 3, PortNum: 2, Options: mad.PortInfoRecordFull})}},
	{"-s", []question{
		{mad.MethodGetTable, mad.AttrPortInfoRecord, mad.PortInfoMatchBits, mad.PortInfoComponentCapabilityMask, 0, &mad.PortInfoRecord{PortInfo: mad.PortInfo{CapabilityMask: mad.IsSM}}},
		{mad.MethodGetTable, mad.AttrPortInfoRecord, mad.PortInfoMatchBits, mad.PortInfoComponentCapabilityMask, 0, &mad.PortInfoRecord{PortInfo: mad.PortInfo{CapabilityMask: mad.IsSMDisabled}}},
	}},
	{"SL2VL 3/2/1", []question{table(mad.AttrSLtoVLRecord, mad.SLtoVLComponentLID|mad.SLtoVLComponentInputPortNum|mad.SLtoVLComponentOutputPortNum,
		&mad.SLtoVLMappingTableRecord{LID: 3, InputPortNum: 2, OutputPortNum: 1})}},
	{"SWIR", []question{askCPI, table(mad.AttrSwitchInfoRecord, 0, nil)}},
	{"SWIR 3", []question{askCPI, table(mad.AttrSwitchInfoRecord, mad.SwitchInfoComponentLID, &mad.SwitchInfoRecord{LID: 3})}},
	{"LFTR 3/0", []question{table(mad.AttrLinearForwardingRecord, mad.ForwardingComponentLID|mad.ForwardingComponentBlockNum, &mad.LinearForwardingTableRecord{LID: 3})}},
	{"MFTR 3/0/0", []question{table(mad.AttrMulticastForwardingRecord, mad.MulticastForwardingComponentLID|mad.MulticastForwardingComponentPosition|mad.MulticastForwardingComponentBlockNum,
		&mad.MulticastForwardingTableRecord{LID: 3})}},
	{"MFTR 3/5/7", []question{table(mad.AttrMulticastForwardingRecord, mad.MulticastForwardingComponentLID|mad.MulticastForwardingComponentPosition|mad.MulticastForwardingComponentBlockNum,
		&mad.MulticastForwardingTableRecord{LID: 3, Position: 5, BlockNum: 7})}},
	{"SMIR", []question{table(mad.AttrSMInfoRecord, 0, nil)}},
	{"LR", []question{table(mad.AttrLinkRecord, 0, nil)}},
	{"LR 1/1 3/1", []question{table(mad.AttrLinkRecord, mad.LinkComponentFromLID|mad.LinkComponentFromPort|mad.LinkComponentToLID|mad.LinkComponentToPort,
		&mad.LinkRecord{FromLID: 1, FromPort: 1, ToPort: 1, ToLID: 3})}},
	{"GIR 1/0", []question{table(mad.AttrGUIDInfoRecord, mad.GUIDInfoComponentLID|mad.GUIDInfoComponentBlockNum, &mad.GUIDInfoRecord{LID: 1})}},
	{"PKTR 1/1/0", []question{table(mad.AttrPKeyTableRecord, mad.PKeyTableComponentLID|mad.PKeyTableComponentBlockNum|mad.PKeyTableComponentPortNum, &mad.PKeyTableRecord{LID: 1, PortNum: 1})}},
	{"--smkey 1 PKTR 1/1/0", []question{{mad.MethodGetTable, mad.AttrPKeyTableRecord, 0, mad.PKeyTableComponentLID | mad.PKeyTableComponentBlockNum | mad.PKeyTableComponentPortNum, 1, &mad.PKeyTableRecord{LID: 1, PortNum: 1}}}},
	{"VLAR 1/1/3", []question{table(mad.AttrVLArbitrationRecord, mad.VLArbitrationComponentLID|mad.VLArbitrationComponentOutputPortNum|mad.VLArbitrationComponentBlockNum,
		&mad.VLArbitrationTableRecord{LID: 1, OutputPortNum: 1, BlockNum: mad.VLArbHigh0})}},
	{"PR", []question{table(mad.AttrPathRecord, 0, nil)}},
	{"PR --slid 1 --dlid 4", []question{table(mad.AttrPathRecord, mad.PathComponentSLID|mad.PathComponentDLID, &mad.PathRecord{SLID: 1, DLID: 4})}},
	{"--src-to-dst 1:5", []question{table(mad.AttrPathRecord, mad.PathComponentSLID|mad.PathComponentDLID|mad.PathComponentNumbPath, &mad.PathRecord{SLID: 1, DLID: 5, NumbPath: 127})}},
	{"PR --service_id 0x1122334455667788 --sgid fe80::10:1 --dgid fe80::10:3 --slid 1 --dlid 4 --hop_limit 9 --flow_label 0x77 --tclass 6 --reversible 1 --numb_path 3" +
		" --pkey 0x8123 --qos_class 2748 --sl 5 --mtu 0x44 --rate 0x83 --pkt_lifetime 0xd2", []question{table(mad.AttrPathRecord, allPaths, &mad.PathRecord{
		ServiceID: 0x1122334455667788, SGID: gid("fe80::10:1"), DGID: gid("fe80::10:3"), SLID: 1, DLID: 4, HopLimit: 9, FlowLabel: 0x77, TClass: 6,
		Reversible: true, NumbPath: 3, PKey: 0x8123, QoSClass: 2748, SL: 5, MTUSelector: mad.SelectLess, MTU: ib.MTU2048,
		RateSelector: mad.SelectExactly, Rate: ib.Rate10, PacketLifeTimeSelector: mad.SelectBest, PacketLifeTime: 18,
	})}},
	{"MCMR", []question{table(mad.AttrMCMemberRecord, 0, nil)}},
	{"-g", []question{table(mad.AttrMCMemberRecord, 0, nil)}},
	{"--smkey 1 MCMR", []question{{method: mad.MethodGetTable, attr: mad.AttrMCMemberRecord, key: 1}}},
	{"MCMR --mgid ff12:401b:ffff::ffff:ffff --gid fe80::10:3 --mlid 0xc000 --qkey 0xb1b --mtu 0x84 --rate 0x83 --pkt_lifetime 0x92 --tclass 6 --pkey 0xffff --sl 5" +
		" --flow_label 0x77 --hop_limit 9 --scope 2 --join_state 1", []question{table(mad.AttrMCMemberRecord, allGroups, &mad.MCMemberRecord{
		MGID: gid("ff12:401b:ffff::ffff:ffff"), PortGID: gid("fe80::10:3"), MLID: 0xC000, QKey: 0xB1B, MTUSelector: mad.SelectExactly, MTU: ib.MTU2048,
		RateSelector: mad.SelectExactly, Rate: ib.Rate10, PacketLifeTimeSelector: mad.SelectExactly, PacketLifeTime: 18, TClass: 6, PKey: 0xFFFF, SL: 5,
		FlowLabel: 0x77, HopLimit: 9, Scope: 2, JoinState: ib.FullMember,
	})}},
	{"-K SR", []question{table(mad.AttrServiceRecord, 0, nil)}},
	{"--smkey 1 -K SR", []question{{method: mad.MethodGetTable, attr: mad.AttrServiceRecord, key: 1}}},
	{"-K IIR", []question{table(mad.AttrInformInfoRecord, 0, nil)}},
	{"-K IIR fe80::10:3", []question{table(mad.AttrInformInfoRecord, mad.InformInfoComponentSubscriberGID, &mad.InformInfoRecord{SubscriberGID: gid("fe80::10:3")})}},
}

func gid(s string) ib.GID {
	g, err := ib.ParseGID(s)
	if err != nil {
		panic(err)
	}
	return g
}

// TestCaptureSA: every question of saquery is the bytes that we make of it, and every answer of OpenSM is decoded to what
// saquery prints of it.
func TestCaptureSA(t *testing.T) {
	ibsimtest.Need(t, "opensm", "saquery")
	lab := ibsimtest.Start(t, []byte(netlist))
	base := "tap-" + lab.Socket()
	tap, err := Listen(base, lab.Socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tap.Close(); err != nil {
			t.Error(err)
		}
	})
	client := ibsimlab.Client{Socket: base, Dir: t.TempDir()}
	testenv.Program(t, "gcc")
	preload, err := satest.BuildPreload(t.Context(), client.Dir)
	if err != nil {
		t.Fatal(err)
	}
	log := startOpenSM(t, client, preload)
	waitLine(t, log, "SUBNET UP")
	register(t, lab.Socket())
	var runs []saRun
	for _, q := range queries {
		runs = append(runs, askSA(t, tap, client, preload, q.args, q.args))
	}
	for _, a := range alteredSA {
		for i := range perAltered {
			tap.SetAlter(a.alter(rand.New(rand.NewPCG(uint64(i), 3))))
			runs = append(runs, askSA(t, tap, client, preload, fmt.Sprintf("altered %d: %s", i, a.args), a.args))
		}
	}
	tap.SetAlter(nil)
	ibsimtest.Console(t, lab, `unlink "h2"`)
	waitLine(t, log, "SUBNET UP")
	runs = append(runs, saRun{label: reported, answers: []mad.MAD{report(t, tap)}})
	for _, r := range runs {
		r.judge(t)
	}
	if *update {
		writeSARuns(t, runs)
	}
}

// askSA runs saquery and keeps its requests, answers and output. If it fails because the answer is an error, that belongs
// to the output.
func askSA(t *testing.T, tap *Tap, client ibsimlab.Client, preload satest.Preload, label, args string) saRun {
	t.Helper()
	tap.SetLabel(label)
	n := len(tap.Frames())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd, err := client.Command(ctx, "sm", "saquery", strings.Fields(args)...)
	if err != nil {
		t.Fatal(err)
	}
	preload.Apply(cmd)
	out, _ := cmd.CombinedOutput()
	r := saRun{label: label, output: string(out)}
	for _, f := range tap.Frames()[n:] {
		m := f.mad()
		switch {
		case m.Class() != mad.ClassSubnAdm || uint32(m.TID()) == satest.PartingTID:
		case f.ToSim && !m.IsResponse() && m.RMPPType() == mad.RMPPNone:
			if !slices.Contains(r.questions, *m) { // a busy machine may have it asked again
				r.questions = append(r.questions, *m)
			}
		case !f.ToSim && m.IsResponse():
			r.answers = append(r.answers, *m)
		}
	}
	return r
}

// Registrations of h1 with OpenSM, so that there are records of it.
var (
	aService = mad.ServiceRecord{
		ServiceID: 0x1000000000000042, ServiceGID: gid("fe80::10:3"), ServicePKey: 0xFFFF, ServiceLease: mad.LeaseForever,
		ServiceKey: ib.NewServiceKey([16]byte{0xA0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xAF}), ServiceName: [64]byte([]byte(fmt.Sprintf("%-63s\x00", "a service"))),
		ServiceData8: [16]byte{1, 2, 3, 15: 16}, ServiceData16: [8]uint16{0x101, 7: 0x808}, ServiceData32: [4]uint32{1, 2, 3, 4}, ServiceData64: [2]uint64{5, 6},
	}
	aSubscription = mad.InformInfo{
		LIDRangeBegin: mad.AllLIDs, IsGeneric: 1, Subscribe: 1, Type: mad.AllTypes, TrapNumber: mad.TrapGIDOutOfService,
		RespTimeValue: 19, ProducerType: mad.ProducerClassManager,
	}
	aMember = mad.MCMemberRecord{MGID: gid("ff12:401b:ffff::ffff:ffff"), PortGID: gid("fe80::10:3"), JoinState: ib.FullMember}
)

// register makes h1 offer a service, subscribe and join, each by a Set that OpenSM
// takes.
func register(t *testing.T, socket string) {
	t.Helper()
	c, err := satest.Dial(t.Context(), socket, "h1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	set(t, c, mad.AttrServiceRecord, 0x7F, &aService)
	set(t, c, mad.AttrInformInfo, 0, &aSubscription)
	set(t, c, mad.AttrMCMemberRecord, mad.MCMemberJoin, &aMember)
}

func set[T any](t *testing.T, c *satest.Client, a mad.AttrID, mask mad.ComponentMask, v *T) {
	t.Helper()
	p := make([]byte, mad.LayoutOf[T]().Size())
	if err := mad.Encode(p, v); err != nil {
		t.Fatal(err)
	}
	answer, err := c.Ask(satest.Question{Method: mad.MethodSet, Attr: a, Mask: mask, Record: p})
	if err != nil || answer.Method != mad.MethodGetResp || answer.Status != mad.StatusOK {
		t.Fatalf("Set of %s: %v %v, %v", mad.LayoutOf[T]().Name(), answer.Method, answer.Status, err)
	}
}

// report waits for the Report that a host went away, as OpenSM sends it to h1.
func report(t *testing.T, tap *Tap) mad.MAD {
	t.Helper()
	found := make(chan mad.MAD, 1)
	look := func(f *Frame) {
		if m := f.mad(); f.ToSim && m.Class() == mad.ClassSubnAdm && m.Method() == mad.MethodReport {
			select {
			case found <- *m:
			default:
			}
		}
	}
	tap.SetAlter(look)
	defer tap.SetAlter(nil)
	for _, f := range tap.Frames() { // those before
		look(&f)
	}
	select {
	case m := <-found:
		return m
	case <-time.After(time.Minute):
		t.Fatal("OpenSM reports nothing")
		return mad.MAD{}
	}
}
