package ibsim_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/packaging/testenv"
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

// low is the part of a transaction identifier that ibsim leaves alone.
func low(t ib.TID) uint32 { return uint32(t) }

// roundTrip sends one packet and receives the next one.
func roundTrip(t testing.TB, p transport.Port, out transport.Packet) transport.Packet {
	t.Helper()
	if _, err := p.Send([]transport.Packet{out}); err != nil {
		t.Fatal(err)
	}
	in := make([]transport.Packet, 1)
	if n, err := p.Receive(in); n != 1 || err != nil {
		t.Fatalf("receive: %d, %v", n, err)
	}
	return in[0]
}

func TestDirectedRoutes(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	p := dial(t, lab.Socket(), "sm", false)
	if got, want := p.GUID(), ib.GUID(0x0020000000000001); got != want {
		t.Errorf("port GUID %v, want %v", got, want)
	}
	type node struct {
		GUID ib.GUID
		Type ib.NodeType
		Port ib.PortNum
	}
	for _, tt := range []struct {
		name  string
		route []ib.PortNum
		want  node
	}{
		{"ourselves", nil, node{0x0020000000000000, ib.NodeCA, 1}},
		{"the switch", []ib.PortNum{1}, node{0x0010000100000001, ib.NodeSwitch, 1}},
		{"the other host", []ib.PortNum{1, 2}, node{0x0020000000000100, ib.NodeCA, 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := roundTrip(t, p, get(7, mad.AttrNodeInfo, tt.route...))
			var ni mad.NodeInfo
			if err := mad.Decode(in.MAD.Data(), &ni); err != nil {
				t.Fatal(err)
			}
			if in.Undelivered || in.MAD.Method() != mad.MethodGetResp || low(in.MAD.TID()) != 7 {
				t.Errorf("answer %v %v, undelivered %v", in.MAD.Method(), in.MAD.TID(), in.Undelivered)
			}
			if diff := cmp.Diff(node{ni.NodeGUID, ni.NodeType, ni.LocalPortNum}, tt.want); diff != "" {
				t.Errorf("got-, want+\n%s", diff)
			}
		})
	}
}

func TestUndelivered(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	p := dial(t, lab.Socket(), "sm", false)
	in := roundTrip(t, p, get(9, mad.AttrNodeInfo, 1, 3))
	if !in.Undelivered || in.MAD.Method() != mad.MethodGet || low(in.MAD.TID()) != 9 {
		t.Errorf("request over a dead link: %v %v, undelivered %v", in.MAD.Method(), in.MAD.TID(), in.Undelivered)
	}
}

func TestBatchesKeepOrder(t *testing.T) {
	const count = 1000
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	p := dial(t, lab.Socket(), "sm", false)
	out := make([]transport.Packet, count)
	for i := range out {
		out[i] = get(ib.TID(i), mad.AttrNodeInfo, 1)
	}
	sent := make(chan error, 1)
	go func() {
		_, err := p.Send(out)
		sent <- err
	}()
	in := make([]transport.Packet, 100)
	for next := 0; next < count; {
		n, err := p.Receive(in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if got := low(in[i].MAD.TID()); got != uint32(next) {
				t.Fatalf("answer %d has TID %d", next, got)
			}
			next++
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestRequestsReachTheSM(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	sm := dial(t, lab.Socket(), "sm", true)
	host := dial(t, lab.Socket(), "h1", false)
	if err := sm.SetIsSM(true); err != nil {
		t.Fatal(err)
	}
	var pi mad.PortInfo
	in := roundTrip(t, host, get(1, mad.AttrPortInfo, 1, 1))
	if err := mad.Decode(in.MAD.Data(), &pi); err != nil {
		t.Fatal(err)
	}
	if uint32(pi.CapabilityMask)&2 == 0 {
		t.Errorf("capability mask %#x has no IsSM bit", pi.CapabilityMask)
	}

	if _, err := host.Send([]transport.Packet{get(5, mad.AttrSMInfo, 1, 1)}); err != nil {
		t.Fatal(err)
	}
	req := make([]transport.Packet, 1)
	if _, err := sm.Receive(req); err != nil {
		t.Fatal(err)
	}
	if req[0].MAD.Attr() != mad.AttrSMInfo || req[0].MAD.Method() != mad.MethodGet {
		t.Fatalf("the SM received %v %v", req[0].MAD.Method(), req[0].MAD.Attr())
	}
	req[0].MAD.Respond(mad.StatusOK)
	if _, err := sm.Send(req); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Receive(req); err != nil {
		t.Fatal(err)
	}
	if req[0].MAD.Method() != mad.MethodGetResp || low(req[0].MAD.TID()) != 5 || req[0].Undelivered {
		t.Errorf("the host received %v %v", req[0].MAD.Method(), req[0].MAD.TID())
	}
}

func TestDialErrors(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	dial(t, lab.Socket(), "h1", true)
	var (
		notRunning *ibsim.NotRunningError
		refused    *ibsim.RefusedError
	)
	for _, tt := range []struct {
		name string
		opts ibsim.Options
		as   any
		want string
	}{
		{"no simulator", ibsim.Options{Socket: "portcullis-nobody", Node: "sm"}, &notRunning, `no simulator listens on socket "portcullis-nobody"`},
		{"unknown node", ibsim.Options{Socket: lab.Socket(), Node: "nowhere"}, &refused, "the node is unknown"},
		{"second SM", ibsim.Options{Socket: lab.Socket(), Node: "h1", AsSM: true}, &refused, "it has an SM client already"},
		{"long node", ibsim.Options{Socket: lab.Socket(), Node: strings.Repeat("n", 32)}, nil, "at most 31 bytes"},
		{"long socket", ibsim.Options{Socket: strings.Repeat("s", 81)}, nil, "at most 80 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := ibsim.Dial(t.Context(), tt.opts)
			if err == nil {
				p.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), tt.want) || tt.as != nil && !errors.As(err, tt.as) {
				t.Errorf("error %q (%T), want %q", err, err, tt.want)
			}
		})
	}
	// A refused client must not have cost the simulator anything.
	in := roundTrip(t, dial(t, lab.Socket(), "sm", false), get(1, mad.AttrNodeInfo))
	if in.Undelivered {
		t.Error("the simulator does not answer any more")
	}
}

func TestSlotsAreGivenBack(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	for i := range 25 { // ibsim has 10 slots
		p, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: lab.Socket(), Node: "sm", AsSM: true})
		if err != nil {
			t.Fatalf("attachment %d: %v", i, err)
		}
		if err := errors.Join(p.Close(), p.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSeveralAttachments(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	a, b := dial(t, lab.Socket(), "sm", false), dial(t, lab.Socket(), "sm", false)
	if a.Slot() == b.Slot() {
		t.Fatalf("both attachments have slot %d", a.Slot())
	}
	for i, p := range []*ibsim.Port{a, b} {
		if in := roundTrip(t, p, get(ib.TID(100+i), mad.AttrNodeInfo)); low(in.MAD.TID()) != uint32(100+i) {
			t.Errorf("attachment %d received the answer to %v", i, in.MAD.TID())
		}
	}
}

func TestCloseWakesReceive(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	p := dial(t, lab.Socket(), "sm", false)
	roundTrip(t, p, get(1, mad.AttrNodeInfo))
	woken := make(chan error, 1)
	go func() {
		_, err := p.Receive(make([]transport.Packet, 1))
		woken <- err
	}()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-woken; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Receive: %v", err)
	}
	if _, err := p.Send(make([]transport.Packet, 1)); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Send: %v", err)
	}
	if err := p.SetIsSM(true); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("SetIsSM: %v", err)
	}
}

func TestSimulatorKilled(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	p := dial(t, lab.Socket(), "sm", false)
	waiting := make(chan error, 1)
	go func() {
		_, err := p.Receive(make([]transport.Packet, 1))
		waiting <- err
	}()
	if err := lab.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Send([]transport.Packet{get(1, mad.AttrNodeInfo)}); !errors.Is(err, transport.ErrLost) {
		t.Errorf("Send: %v", err)
	}
	if err := <-waiting; !errors.Is(err, transport.ErrLost) {
		t.Errorf("Receive: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	_, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: lab.Socket()})
	var notRunning *ibsim.NotRunningError
	if !errors.As(err, &notRunning) || !strings.Contains(err.Error(), "start portcullis-sim or ibsim") {
		t.Errorf("Dial: %v", err)
	}
}

// After a restart of the simulator a driver dials again.
func TestDialAgainAfterRestart(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	p := dial(t, lab.Socket(), "sm", true)
	if err := lab.Kill(); err != nil {
		t.Fatal(err)
	}
	again, err := ibsimlab.Start(t.Context(), ibsimlab.Options{Netlist: []byte(ibsimtest.TwoHosts), Dir: t.TempDir(), Socket: lab.Socket()})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Stop()
	if _, err := p.Receive(make([]transport.Packet, 1)); !errors.Is(err, transport.ErrLost) {
		t.Errorf("Receive on the old port: %v", err)
	}
	q := dial(t, lab.Socket(), "sm", true) // while the old one still is open
	if in := roundTrip(t, q, get(1, mad.AttrNodeInfo, 1)); in.Undelivered {
		t.Error("the new port does not work")
	}
}

// A stopped simulator fills the wire; Close must wake a waiting sender.
func TestCloseWakesSend(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	p := dial(t, lab.Socket(), "sm", false)
	testenv.Halt(t, lab.PID())
	defer syscall.Kill(lab.PID(), syscall.SIGCONT)
	out := make([]transport.Packet, 5000)
	for i := range out {
		out[i] = get(ib.TID(i), mad.AttrNodeInfo)
	}
	sent := make(chan error, 1)
	go func() {
		_, err := p.Send(out)
		sent <- err
	}()
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Send: %v", err)
	}
}

// A simulator that took the connection but never answers must not hold us.
func TestDeafSimulator(t *testing.T) {
	socket := fmt.Sprintf("deaf-%d", os.Getpid())
	deaf, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@" + socket + ":ctl\x00", Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := ibsim.Dial(ctx, ibsim.Options{Socket: socket}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Dial: %v", err)
	}
}

// TestNoAllocation holds Send and Receive to their promise; the SM core's rate
// depends on it.
func TestNoAllocation(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(ibsimtest.TwoHosts))
	p := dial(t, lab.Socket(), "sm", false)
	out, in := []transport.Packet{get(1, mad.AttrNodeInfo)}, make([]transport.Packet, 8)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := p.Send(out); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Receive(in); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations per packet", n)
	}
}

func BenchmarkSMP(b *testing.B) {
	lab := ibsimtest.Start(b, []byte(ibsimtest.TwoHosts))
	p := dial(b, lab.Socket(), "sm", false)
	const window = 64
	out, in := make([]transport.Packet, window), make([]transport.Packet, window)
	for i := range out {
		out[i] = get(ib.TID(i), mad.AttrNodeInfo)
	}
	if _, err := p.Send(out); err != nil {
		b.Fatal(err)
	}
	for got := 0; b.Loop(); got-- {
		if got > 0 {
			continue
		}
		n, err := p.Receive(in)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Send(out[:n]); err != nil {
			b.Fatal(err)
		}
		got = n
	}
}
