package softhcaserver_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/hcaconf"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/softhcaserver"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/softhca"
)

const list = `switchguid=0x10
Switch 8 "leaf"
[1]	"sm"[1]	# "sm" lid 0 4xEDR
[2]	"h1"[1]	# "h1" lid 0 4xEDR
[3]	"h2"[1]	# "h2" lid 0 4xEDR
[4]	"dual"[1]	# "dual" lid 0 4xEDR
[5]	"dual"[2]	# "dual" lid 0 4xEDR

caguid=0x20
Ca 1 "sm"
[1]	"leaf"[1]	# lid 0 lmc 0 "leaf" lid 0 4xEDR

caguid=0x30
Ca 1 "h1"
[1]	"leaf"[2]	# lid 0 lmc 0 "leaf" lid 0 4xEDR

caguid=0x40
Ca 1 "h2"
[1]	"leaf"[3]	# lid 0 lmc 0 "leaf" lid 0 4xEDR

caguid=0x50
Ca 2 "dual"
[1]	"leaf"[4]	# lid 0 lmc 0 "leaf" lid 0 4xEDR
[2]	"leaf"[5]	# lid 0 lmc 0 "leaf" lid 0 4xEDR
`

// limit bounds the time of actions that should happen at once.
const limit = 20 * time.Second

func fabric(t testing.TB) *sim.Fabric {
	t.Helper()
	l, err := netlist.Parse("list", []byte(list))
	if err != nil {
		t.Fatal(err)
	}
	return sim.New(l)
}

// kernel is the other end of the protocol, as the module is.
type kernel struct {
	t       testing.TB
	conn    *softhca.Conn
	stream  net.Conn
	adapter *softhcaserver.Adapter
	attach  softhca.Attach
}

// plug plugs a node into a kernel that is this test.
func plug(t testing.TB, s *softhcaserver.Server, o softhcaserver.Options) *kernel {
	t.Helper()
	ours, theirs := pair(t)
	k := &kernel{t: t, conn: softhca.NewConn(ours, "test"), stream: ours}
	var err error
	if k.adapter, err = s.Plug(t.Context(), softhca.NewConn(theirs, "server"), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.adapter.Unplug)
	m := k.next(softhca.TypeAttach)
	if k.attach, err = softhca.ParseAttach(m.Payload); err != nil {
		t.Fatal(err)
	}
	k.send(softhca.Message{Type: softhca.TypeAttached})
	if err := k.adapter.Registered(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

// pair returns the two ends of a stream. Its buffers hold data that is not read yet.
func pair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := [2]net.Conn{}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		if ends[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		f.Close()
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

func (k *kernel) send(m softhca.Message) {
	k.t.Helper()
	if err := k.conn.Write(&m); err != nil {
		k.t.Fatal(err)
	}
}

// next reads up to a message of a type; others are thrown away.
func (k *kernel) next(want softhca.Type) softhca.Message {
	k.t.Helper()
	for {
		m := k.any()
		if m.Type == want {
			return m
		}
	}
}

func (k *kernel) any() softhca.Message {
	k.t.Helper()
	if err := k.stream.SetReadDeadline(time.Now().Add(limit)); err != nil {
		k.t.Fatal(err)
	}
	m, err := k.conn.Read()
	if err != nil {
		k.t.Fatal(err)
	}
	m.Payload = bytes.Clone(m.Payload)
	return m
}

// silent checks that no message comes.
func (k *kernel) silent(what string) {
	k.t.Helper()
	if err := k.stream.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		k.t.Fatal(err)
	}
	if m, err := k.conn.Read(); !errors.Is(err, os.ErrDeadlineExceeded) {
		k.t.Errorf("%s: message %d came, %v", what, m.Type, err)
	}
}

// smp is a Get of an attribute, as a payload.
func smp(attr mad.AttrID, mod uint32, route ...ib.PortNum) []byte {
	var m mad.MAD
	r := mad.MakeRoute(route...)
	mad.NewSMP(&m, mad.Header{Method: mad.MethodGet, TID: 0x1234_0005_0000_0007, Attr: attr, Mod: mod}, &r, ib.MKey{})
	if len(route) > 0 {
		m.SetHopPointer(1) // as Linux has it on the link
	}
	return m[:]
}

// manager programs the fabric as far as these tests need it: LIDs 1, 2 and 3 of sm, h1 and h2, and ports that are Active.
type manager struct {
	t testing.TB
	f *sim.Fabric
	s *sim.Station
}

func bringUp(t testing.TB, f *sim.Fabric) manager {
	t.Helper()
	s, err := f.Station("sm", true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	m := manager{t, f, s}
	info := f.SwitchInfo("leaf")
	info.LinearFDBTop = 10
	m.set(mad.AttrSwitchInfo, 0, func(b []byte) error { return mad.Encode(b, &info) }, 1)
	m.set(mad.AttrLinearForwardingTable, 0, func(b []byte) error {
		copy(b, bytes.Repeat([]byte{255}, mad.DataSize))
		copy(b[1:], []byte{1, 2, 3})
		return nil
	}, 1)
	for lid, node := range []string{1: "sm", 2: "h1", 3: "h2"} {
		if node == "" {
			continue
		}
		for _, state := range []ib.PortState{ib.PortArmed, ib.PortActive} {
			m.port("leaf", ib.PortNum(lid), func(p *mad.PortInfo) { p.PortState = state }, 1)
			route := []ib.PortNum{1, ib.PortNum(lid)}
			if node == "sm" {
				route = nil
			}
			m.port(node, 1, func(p *mad.PortInfo) {
				p.LID, p.MasterSMLID, p.PortState, p.NeighborMTU = ib.LID(lid), 1, state, ib.MTU4096
			}, route...)
		}
	}
	return m
}

func (m manager) set(attr mad.AttrID, mod uint32, fill func([]byte) error, route ...ib.PortNum) {
	m.t.Helper()
	p := transport.Packet{LID: ib.PermissiveLID}
	r := mad.MakeRoute(route...)
	mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodSet, Attr: attr, Mod: mod}, &r, ib.MKey{})
	if err := fill(p.MAD.Data()); err != nil {
		m.t.Fatal(err)
	}
	for _, in := range m.s.Exchange([]transport.Packet{p}, nil) {
		if in.MAD.Method() == mad.MethodGetResp && !in.Undelivered && in.MAD.Status() == mad.StatusOK {
			return
		}
	}
	m.t.Fatalf("Set of %v was not answered", attr)
}

func (m manager) port(node string, num ib.PortNum, change func(*mad.PortInfo), route ...ib.PortNum) {
	m.t.Helper()
	info := m.f.PortInfo(node, num)
	info.PortState, info.PortPhysicalState, info.NeighborMTU = ib.PortNop, ib.PhysNop, ib.MTU4096
	change(&info)
	m.set(mad.AttrPortInfo, uint32(num), func(b []byte) error { return mad.Encode(b, &info) }, route...)
}

func (m manager) pkeys(leafPort ib.PortNum, keys ...ib.PKey) {
	m.t.Helper()
	m.set(mad.AttrPKeyTable, 0, func(b []byte) error {
		for i, k := range keys {
			binary.BigEndian.PutUint16(b[2*i:], uint16(k))
		}
		return nil
	}, 1, leafPort)
}

func TestAttach(t *testing.T) {
	f := fabric(t)
	k := plug(t, softhcaserver.New(f), softhcaserver.Options{Node: "dual", Name: "mlx5_3", Flags: softhca.Function, Hold: time.Second})
	if a := k.attach; a.Name != "mlx5_3" || a.Ports != 2 || a.NodeGUID != 0x50 || a.Description != "dual" || a.PKeys != 64 || a.Hold != time.Second ||
		a.Flags != softhca.Function || a.NodeType != ib.NodeCA {
		t.Errorf("adapter %+v", a)
	}
	if _, err := f.Station("dual", false); err == nil {
		t.Error("a program attaches to a port that a host has")
	}
	k.adapter.Unplug()
	if _, err := f.Station("dual", false); err != nil {
		t.Errorf("after the adapter was pulled: %v", err)
	}
}

func TestRefusedAdapters(t *testing.T) {
	f := fabric(t)
	s := softhcaserver.New(f)
	plug(t, s, softhcaserver.Options{Node: "h1"})
	for _, o := range []softhcaserver.Options{{Node: "nowhere"}, {Node: "leaf"}, {Node: "h1"}, {Node: "h2", Name: "a/b"}} {
		_, theirs := pair(t)
		if _, err := s.Plug(t.Context(), softhca.NewConn(theirs, "server"), o); err == nil {
			t.Errorf("%+v was plugged in", o)
		}
	}
	free, err := f.Station("h2", false)
	if err != nil {
		t.Fatalf("a refused adapter keeps its port: %v", err)
	}
	free.Close()
	ours, theirs := pair(t)
	a, err := s.Plug(t.Context(), softhca.NewConn(theirs, "server"), softhcaserver.Options{Node: "h2"})
	if err != nil {
		t.Fatal(err)
	}
	if err := softhca.NewConn(ours, "test").Write(&softhca.Message{Type: softhca.TypeAttached, Status: uint32(syscall.ENFILE)}); err != nil {
		t.Fatal(err)
	}
	if err := a.Registered(t.Context()); !errors.Is(err, syscall.ENFILE) {
		t.Errorf("an adapter that its host refuses: %v", err)
	}
	ours.Close()
	if err := a.Wait(); err == nil {
		t.Error("the host is gone, and nothing is said of it")
	}
}

func TestFirmwareAnswers(t *testing.T) {
	k := plug(t, softhcaserver.New(fabric(t)), softhcaserver.Options{Node: "dual"})
	for _, port := range []ib.PortNum{1, 2} {
		k.send(softhca.Message{Type: softhca.TypeRequest, Port: port, Token: 40 + uint32(port), Payload: smp(mad.AttrPortInfo, uint32(port))})
		m := k.next(softhca.TypeReply)
		var info mad.PortInfo
		if m.Token != 40+uint32(port) || m.Status != 0 || len(m.Payload) != mad.Size || mad.Decode(m.Payload[64:], &info) != nil || info.LocalPortNum != port {
			t.Errorf("port %d: %+v", port, m)
		}
	}
	k.send(softhca.Message{Type: softhca.TypeRequest, Port: 1, Token: 50, Payload: make([]byte, mad.Size)})
	if m := k.next(softhca.TypeReply); m.Status != uint32(syscall.EIO) {
		t.Errorf("what is no MAD is answered by %+v", m)
	}
	k.adapter.Behave(softhcaserver.Behavior{Delay: 50 * time.Millisecond})
	begin := time.Now()
	k.send(softhca.Message{Type: softhca.TypeRequest, Port: 1, Token: 60, Payload: smp(mad.AttrNodeInfo, 0)})
	if m := k.next(softhca.TypeReply); m.Token != 60 || time.Since(begin) < 50*time.Millisecond {
		t.Errorf("a late answer came after %v", time.Since(begin))
	}
	k.adapter.Behave(softhcaserver.Behavior{Silent: true})
	k.send(softhca.Message{Type: softhca.TypeRequest, Port: 1, Token: 70, Payload: smp(mad.AttrNodeInfo, 0)})
	k.silent("firmware that does not answer")
}

// The SMP firewall keeps the host's requests from the firmware, and not those of the driver.
func TestFirewall(t *testing.T) {
	f := fabric(t)
	if err := f.ConfigureHCA("h1", hcaconf.Config{SMPFirewall: true}); err != nil {
		t.Fatal(err)
	}
	if err := f.Reboot("h1"); err != nil {
		t.Fatal(err)
	}
	k := plug(t, softhcaserver.New(f), softhcaserver.Options{Node: "h1"})
	for flags, want := range map[softhca.Flags]uint32{0: 0, softhca.FlagHost: uint32(syscall.EIO)} {
		k.send(softhca.Message{Type: softhca.TypeRequest, Port: 1, Flags: flags, Token: 1, Payload: smp(mad.AttrNodeInfo, 0)})
		if m := k.next(softhca.TypeReply); m.Status != want {
			t.Errorf("request with flags %d: status %d, want %d", flags, m.Status, want)
		}
	}
	k.send(softhca.Message{Type: softhca.TypeSend, Port: 1, DLID: ib.PermissiveLID, Payload: smp(mad.AttrNodeInfo, 0, 1)})
	k.silent("an SMP behind the firewall")
}

// SMPs keep their transaction identifiers, and have the hop pointers that Linux expects.
func TestDirectedRoutes(t *testing.T) {
	f := fabric(t)
	k := plug(t, softhcaserver.New(f), softhcaserver.Options{Node: "h1"})
	k.send(softhca.Message{Type: softhca.TypeSend, Port: 1, DLID: ib.PermissiveLID, Payload: smp(mad.AttrNodeInfo, 0, 1, 3)})
	m := k.next(softhca.TypeReceive)
	answer := mad.MAD(m.Payload)
	var info mad.NodeInfo
	if err := mad.Decode(answer.Data(), &info); err != nil {
		t.Fatal(err)
	}
	if m.SLID != ib.PermissiveLID || m.DestQP != 0 || answer.TID() != 0x1234_0005_0000_0007 || answer.HopPointer() != 1 || !answer.Returning() || info.NodeGUID != 0x40 {
		t.Errorf("from %v to queue pair %d, TID %v, hop pointer %d, node %v", m.SLID, m.DestQP, answer.TID(), answer.HopPointer(), info.NodeGUID)
	}
	// To a subnet manager on the host: SMInfo.
	s, err := f.Station("sm", false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ask := transport.Packet{LID: ib.PermissiveLID}
	r := mad.MakeRoute(1, 2)
	mad.NewSMP(&ask.MAD, mad.Header{Method: mad.MethodGet, Attr: mad.AttrSMInfo, TID: 9}, &r, ib.MKey{})
	s.Send(ask)
	m = k.next(softhca.TypeReceive)
	request := mad.MAD(m.Payload)
	if request.Attr() != mad.AttrSMInfo || request.HopPointer() != 2 || request.Returning() {
		t.Errorf("%v with hop pointer %d", request.Attr(), request.HopPointer())
	}
	request.Respond(mad.StatusOK)
	request.SetHopPointer(2) // as Linux sends it
	k.send(softhca.Message{Type: softhca.TypeSend, Port: 1, DLID: ib.PermissiveLID, Payload: request[:]})
	deadline := time.Now().Add(limit)
	for {
		if in := s.Take(nil); len(in) == 1 && in[0].MAD.Method() == mad.MethodGetResp && !in[0].Undelivered {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the answer of the host's subnet manager did not come")
		}
	}
	k.send(softhca.Message{Type: softhca.TypeCapability, Port: 1, Value: uint32(mad.IsSM)})
	waitFor(t, "IsSM is not set", func() bool { return f.PortInfo("h1", 1).CapabilityMask.Has(mad.IsSM) })
	k.adapter.Unplug()
	if f.PortInfo("h1", 1).CapabilityMask.Has(mad.IsSM) {
		t.Error("IsSM is set though the adapter was pulled")
	}
}

func waitFor(t testing.TB, what string, condition func() bool) {
	t.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.After(limit)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(what)
		}
	}
}

// gmp is a performance Get of a port.
func gmp(tid ib.TID) []byte {
	var m mad.MAD
	m.SetHeader(mad.Header{Class: mad.ClassPerf, ClassVersion: 1, Method: mad.MethodGet, TID: tid, Attr: mad.AttrClassPortInfo})
	return m[:]
}

const gmpQKey = 0x8001_0000

func TestGMPs(t *testing.T) {
	f := fabric(t)
	s := softhcaserver.New(f)
	k1, k2 := plug(t, s, softhcaserver.Options{Node: "h1"}), plug(t, s, softhcaserver.Options{Node: "h2"})
	m := bringUp(t, f)
	m.pkeys(2, ib.DefaultPKeyFull, 0x8005, 0x8006)
	m.pkeys(3, ib.DefaultPKeyFull, 0x0005)
	send := func(key ib.PKey, qkey uint32, payload []byte) {
		k1.send(softhca.Message{
			Type: softhca.TypeSend, Flags: softhca.FlagPath, Port: 1, DLID: 3, SourceQP: 1, DestQP: 1, QKey: qkey, PKey: key, SL: 2, Payload: payload,
		})
	}
	send(0x8005, gmpQKey, gmp(7)) // h2's agent answers
	in := k1.next(softhca.TypeReceive)
	if answer := mad.MAD(in.Payload); answer.Method() != mad.MethodGetResp || answer.TID() != 7 || in.PKey != 0x0005 || in.SLID != 3 || in.QKey != gmpQKey ||
		in.DestQP != 1 || in.SL != 2 {
		t.Errorf("%v %v: %+v", answer.Method(), answer.TID(), in)
	}
	other := mad.MAD(gmp(8))
	other.SetHeader(mad.Header{Class: mad.Class(7), ClassVersion: 2, Method: mad.MethodSend, TID: 8, Attr: 0x10})
	send(0x8005, gmpQKey, other[:]) // for the other host
	if in := k2.next(softhca.TypeReceive); in.PKey != 0x8005 || in.SourceQP != 1 || in.DestQP != 1 || in.SLID != 2 || in.Payload[15] != 8 {
		t.Errorf("h2 got %+v", in)
	}
	before := f.PortInfo("h2", 1)
	send(0x8006, gmpQKey, other[:])
	send(0x8005, 1, other[:])
	waitFor(t, "wrong keys were not counted", func() bool {
		now := f.PortInfo("h2", 1)
		return now.PKeyViolations == before.PKeyViolations+1 && now.QKeyViolations == before.QKeyViolations+1
	})
}

// Data goes to the port with the LID, if the P_Key allows it, with all its fields.
func TestData(t *testing.T) {
	f := fabric(t)
	s := softhcaserver.New(f)
	k1, k2 := plug(t, s, softhcaserver.Options{Node: "h1"}), plug(t, s, softhcaserver.Options{Node: "h2"})
	m := bringUp(t, f)
	m.pkeys(2, ib.DefaultPKeyFull, 0x8005)
	m.pkeys(3, ib.DefaultPKeyFull, 0x8005)
	out := softhca.Message{
		Type: softhca.TypeSend, Flags: softhca.FlagPath | softhca.FlagImmediate, Opcode: softhca.OpRCSend, Port: 1, DLID: 3, SourceQP: 0x41, DestQP: 0x42,
		PKey: 0x8005, PSN: 5, Immediate: 77, Payload: []byte("data"),
	}
	k1.send(out)
	in := k2.next(softhca.TypeReceive)
	if in.Opcode != softhca.OpRCSend || in.SourceQP != 0x41 || in.DestQP != 0x42 || in.PSN != 5 || in.Immediate != 77 || string(in.Payload) != "data" || in.SLID != 2 ||
		in.Flags != softhca.FlagImmediate || in.PKey != 0x8005 {
		t.Errorf("got %+v", in)
	}
	m.pkeys(3, ib.DefaultPKeyFull, 0)
	before := f.PortInfo("h2", 1).PKeyViolations
	k1.send(out)
	waitFor(t, "the wrong P_Key was not counted", func() bool { return f.PortInfo("h2", 1).PKeyViolations == before+1 })
	out.DLID = 1 // a port without host
	delivered := f.Stats().DataDelivered
	m.pkeys(2, ib.DefaultPKeyFull, 0)
	out.PKey = ib.DefaultPKeyFull
	k1.send(out)
	waitFor(t, "data to a port without host did not get there", func() bool { return f.Stats().DataDelivered == delivered+1 })
}

func TestEvents(t *testing.T) {
	f := fabric(t)
	k := plug(t, softhcaserver.New(f), softhcaserver.Options{Node: "h1"})
	m := bringUp(t, f)
	seen := map[softhca.Event]bool{}
	for !seen[softhca.EventLID] || !seen[softhca.EventActive] || !seen[softhca.EventSM] {
		seen[softhca.Event(k.next(softhca.TypeEvent).Value)] = true
	}
	want := func(what string, do func(), events ...softhca.Event) {
		t.Helper()
		do()
		for _, e := range events {
			if got := softhca.Event(k.next(softhca.TypeEvent).Value); got != e {
				t.Errorf("%s: event %d, want %d", what, got, e)
			}
		}
	}
	m.pkeys(2, ib.DefaultPKeyFull, 0x8005)
	table := k.next(softhca.TypePKeys)
	if len(table.Payload) != 128 || binary.BigEndian.Uint16(table.Payload[2:]) != 0x8005 {
		t.Errorf("P_Key table %x", table.Payload)
	}
	want("P_Key", func() {}, softhca.EventPKey)
	want("reregister", func() { m.port("h1", 1, func(p *mad.PortInfo) { p.ClientReregister = true }, 1, 2) }, softhca.EventReregister)
	want("cable", func() {
		if err := f.Unlink("h1", 1); err != nil {
			t.Fatal(err)
		}
	}, softhca.EventError)
	want("failure", k.adapter.Fatal, softhca.EventFatal)
	k.silent("nothing changed")
}

// Messages of an untrusted kernel do no harm.
func TestHostileHost(t *testing.T) {
	f := fabric(t)
	k := plug(t, softhcaserver.New(f), softhcaserver.Options{Node: "h1"})
	for _, m := range []softhca.Message{
		{Type: softhca.TypeSend, Port: 9, Payload: smp(mad.AttrNodeInfo, 0, 1)},
		{Type: softhca.TypeSend, Port: 0},
		{Type: softhca.TypeSend, Port: 1, DestQP: 1, SourceQP: 0, Payload: smp(mad.AttrNodeInfo, 0, 1)},
		{Type: softhca.TypeSend, Port: 1, DestQP: 0, SourceQP: 1, Payload: smp(mad.AttrNodeInfo, 0, 1)},
		{Type: softhca.TypeSend, Port: 1, DestQP: 0xFFFFFFFF, SourceQP: 0xFFFFFFFF, DLID: 0xC001, SL: 200, Payload: make([]byte, softhca.MaxPayload)},
		{Type: softhca.TypeSend, Port: 1, Flags: 0xFF, Opcode: 200, DLID: 0xFFFE},
		{Type: softhca.TypeRequest, Port: 1, Payload: []byte{1}},
		{Type: softhca.TypeReply, Port: 1},
		{Type: softhca.TypeAttached, Status: 5},
		{Type: 250, Port: 1},
	} {
		k.send(m)
	}
	k.send(softhca.Message{Type: softhca.TypeRequest, Port: 1, Token: 3, Payload: smp(mad.AttrNodeInfo, 0)})
	if m := k.next(softhca.TypeReply); m.Token != 3 || m.Status != 0 {
		t.Errorf("after rubbish: %+v", m)
	}
	if _, err := k.stream.Write([]byte{1, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	if err := k.adapter.Wait(); !errors.Is(err, softhca.ErrSize) {
		t.Errorf("a message of 1 byte: %v", err)
	}
}

func TestEndOfContextPulls(t *testing.T) {
	f := fabric(t)
	ours, theirs := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	a, err := softhcaserver.New(f).Plug(ctx, softhca.NewConn(theirs, "server"), softhcaserver.Options{Node: "h1"})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := a.Wait(); err != nil {
		t.Error(err)
	}
	if err := ours.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	k := softhca.NewConn(ours, "test")
	for {
		if _, err := k.Read(); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the connection is open")
		} else if err != nil {
			break
		}
	}
}
