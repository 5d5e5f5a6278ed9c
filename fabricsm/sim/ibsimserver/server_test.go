package ibsimserver_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
)

func dial(t testing.TB, socket, node string, asSM bool) *ibsim.Port {
	t.Helper()
	p, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: socket, Node: node, AsSM: asSM})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func get(tid ib.TID, attr mad.AttrID, route ...ib.PortNum) transport.Packet {
	p := transport.Packet{LID: ib.PermissiveLID}
	r := mad.MakeRoute(route...)
	mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodGet, TID: tid, Attr: attr}, &r, ib.MKey{})
	return p
}

func send(t testing.TB, p transport.Port, packets ...transport.Packet) {
	t.Helper()
	if n, err := p.Send(packets); n != len(packets) || err != nil {
		t.Fatalf("Send: %d, %v", n, err)
	}
}

func receive(t testing.TB, p transport.Port) transport.Packet {
	t.Helper()
	in := make([]transport.Packet, 1)
	if n, err := p.Receive(in); n != 1 || err != nil {
		t.Fatalf("Receive: %d, %v", n, err)
	}
	return in[0]
}

func TestClients(t *testing.T) {
	f, _ := fabric(t)
	c := simtest.Serve(t, f)
	sm, host := dial(t, c.Socket, "sm", true), dial(t, c.Socket, "h3", false)
	if sm.GUID() != 0x0020000000000001 || host.Node() != "h3" {
		t.Errorf("attached to %v and %q", sm.GUID(), host.Node())
	}
	send(t, host, get(1, mad.AttrNodeInfo, 1, 3))
	if in := receive(t, host); in.Undelivered || in.MAD.Method() != mad.MethodGetResp || uint32(in.MAD.TID()) != 1 {
		t.Errorf("answer %v %v, undelivered %v", in.MAD.Method(), in.MAD.TID(), in.Undelivered)
	}
	send(t, host, get(2, mad.AttrNodeInfo, 1, 99))
	if in := receive(t, host); !in.Undelivered || in.MAD.Method() != mad.MethodGet || uint32(in.MAD.TID()) != 2 {
		t.Errorf("lost request: %v %v, undelivered %v", in.MAD.Method(), in.MAD.TID(), in.Undelivered)
	}
	send(t, host, get(3, mad.AttrSMInfo, 1, 3, 1, 1))
	ask := receive(t, sm)
	if ask.MAD.Attr() != mad.AttrSMInfo {
		t.Fatalf("the SM received %v", ask.MAD.Attr())
	}
	ask.MAD.Respond(mad.StatusOK)
	send(t, sm, ask)
	if in := receive(t, host); in.MAD.Method() != mad.MethodGetResp || uint32(in.MAD.TID()) != 3 {
		t.Errorf("SMInfo answer: %v %v", in.MAD.Method(), in.MAD.TID())
	}
	if err := sm.SetIsSM(true); err != nil || !f.PortInfo("sm", 1).CapabilityMask.Has(mad.IsSM) {
		t.Errorf("SetIsSM: %v", err)
	}
}

func TestRefusedClients(t *testing.T) {
	f, _ := fabric(t)
	c := simtest.Serve(t, f)
	dial(t, c.Socket, "sm", true)
	for _, o := range []ibsim.Options{
		{Socket: c.Socket, Node: "nowhere"},
		{Socket: c.Socket, Node: "sm", AsSM: true},
	} {
		_, err := ibsim.Dial(t.Context(), o)
		var refused *ibsim.RefusedError
		if !errors.As(err, &refused) {
			t.Errorf("Dial %+v: %v", o, err)
		}
	}
	var inUse *ibsim.InUseError
	if _, err := ibsim.Listen(c.Socket); !errors.As(err, &inUse) {
		t.Errorf("second Listen: %v", err)
	}
}

// abstract binds a datagram socket as the clients of the protocol do.
func abstract(t testing.TB, name string) *net.UnixConn {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@" + name + "\x00", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ctl makes a control message.
func ctl(client, typ uint32, data []byte) []byte {
	b := make([]byte, 80)
	binary.NativeEndian.PutUint32(b[0:], 0xDEADBEEF)
	binary.NativeEndian.PutUint32(b[4:], client)
	binary.NativeEndian.PutUint32(b[8:], typ)
	copy(b[16:], data)
	return b
}

// connectByHand attaches a client that the test controls, and returns its sockets and its slot.
func connectByHand(t testing.TB, socket, node string, asSM bool) (control, data *net.UnixConn, slot uint32) {
	t.Helper()
	number := 1<<30 + os.Getpid()
	control = abstract(t, fmt.Sprintf("%s:ctl%d", socket, number))
	data = abstract(t, fmt.Sprintf("%s:in%d", socket, number))
	connect := make([]byte, 64)
	binary.NativeEndian.PutUint32(connect[0:], uint32(number))
	if asSM {
		binary.NativeEndian.PutUint32(connect[8:], 1)
	}
	copy(connect[12:], node)
	if _, err := control.WriteToUnix(ctl(0, 1, connect), &net.UnixAddr{Name: "@" + socket + ":ctl\x00", Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	var b [80]byte
	if _, err := control.Read(b[:]); err != nil || binary.NativeEndian.Uint32(b[8:]) != 1 {
		t.Fatalf("CONNECT: %v, type %d", err, binary.NativeEndian.Uint32(b[8:]))
	}
	return control, data, binary.NativeEndian.Uint32(b[4:])
}

// Input that kills ibsim must do no harm: a CONNECT before the data socket is bound, garbage, or a client that uses the
// slot of another.
func TestHostileClients(t *testing.T) {
	f, _ := fabric(t)
	c := simtest.Serve(t, f)
	honest := dial(t, c.Socket, "sm", true)
	number := 1<<30 + os.Getpid()
	rogue := abstract(t, fmt.Sprintf("%s:ctl%d", c.Socket, number))
	server := &net.UnixAddr{Name: "@" + c.Socket + ":ctl\x00", Net: "unixgram"}
	connect := make([]byte, 64)
	binary.NativeEndian.PutUint32(connect, uint32(number))
	answer := func(msg []byte) uint32 {
		t.Helper()
		if _, err := rogue.WriteToUnix(msg, server); err != nil {
			t.Fatal(err)
		}
		var b [100]byte
		if n, err := rogue.Read(b[:]); n != 80 || err != nil {
			t.Fatalf("answer of %d bytes, %v", n, err)
		}
		return binary.NativeEndian.Uint32(b[8:])
	}
	for _, rubbish := range [][]byte{nil, {1}, make([]byte, 80), make([]byte, 200)} {
		if _, err := rogue.WriteToUnix(rubbish, server); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		msg  []byte
	}{
		{"CONNECT without a data socket", ctl(0, 1, connect)},
		{"DISCONNECT of another client", ctl(uint32(honest.Slot()), 2, nil)},
		{"SET_ISSM for another client", ctl(uint32(honest.Slot()), 9, nil)},
		{"slot that nobody has", ctl(9, 8, nil)},
		{"slot out of range", ctl(1<<31, 8, nil)},
	} {
		if got := answer(tt.msg); got != 0 {
			t.Errorf("%s is answered with type %d, want the error", tt.name, got)
		}
	}
	send(t, honest, get(1, mad.AttrNodeInfo))
	if in := receive(t, honest); in.Undelivered {
		t.Error("the honest client is cut off")
	}
}

// A client that dies without DISCONNECT must not keep its place.
func TestDeadClientLosesItsPlace(t *testing.T) {
	f, _ := fabric(t)
	c := simtest.Serve(t, f)
	control, data, _ := connectByHand(t, c.Socket, "h1", true)
	if err := errors.Join(control.Close(), data.Close()); err != nil {
		t.Fatal(err)
	}
	dial(t, c.Socket, "h1", true) // refused while the dead one is there
}

func TestEverySlotIsUsable(t *testing.T) {
	f, _ := fabric(t)
	c := simtest.Serve(t, f)
	for i := range 128 {
		p := dial(t, c.Socket, "h2", false)
		if p.Slot() != i {
			t.Fatalf("attachment %d has slot %d", i, p.Slot())
		}
	}
	var refused *ibsim.RefusedError
	if _, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: c.Socket}); !errors.As(err, &refused) {
		t.Errorf("one too many: %v", err)
	}
}

// The name of a closed socket stays in use while a process that was being started
// then still has it.
func TestSlotWhoseNameIsInUse(t *testing.T) {
	f, _ := fabric(t)
	c := simtest.Serve(t, f)
	held, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@" + c.Socket + ":out0\x00", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if p := dial(t, c.Socket, "sm", true); p.Slot() != 1 {
		t.Errorf("attached to slot %d, want the next after the one in use", p.Slot())
	}
}

// Simulated time follows the clock: a delayed answer comes by itself.
func TestTimePasses(t *testing.T) {
	f, _ := fabric(t)
	if err := f.SetFault("h1", sim.Fault{Delay: 10 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	p := dial(t, simtest.Serve(t, f).Socket, "sm", false)
	send(t, p, get(1, mad.AttrNodeInfo, 1, 2))
	if in := receive(t, p); in.Undelivered {
		t.Error("the delayed request was lost")
	}
}

func BenchmarkSMPOverSocket(b *testing.B) {
	f, _ := fabric(b)
	p := dial(b, simtest.Serve(b, f).Socket, "sm", false)
	const window = 64
	out, in := make([]transport.Packet, window), make([]transport.Packet, window)
	for i := range out {
		out[i] = get(ib.TID(i), mad.AttrNodeInfo)
	}
	send(b, p, out...)
	for got := 0; b.Loop(); got-- {
		if got > 0 {
			continue
		}
		n, err := p.Receive(in)
		if err != nil {
			b.Fatal(err)
		}
		send(b, p, out[:n]...)
		got = n
	}
}
