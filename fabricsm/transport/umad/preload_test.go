package umad

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

const twoHosts = `caguid=0x0020000000000000
Ca 1 "sm"
[1]	"leaf1"[1]

caguid=0x0020000000000100
Ca 1 "h1"
[1]	"leaf1"[2]

switchguid=0x0010000100000001
Switch 4 "leaf1"
[1]	"sm"[1]
[2]	"h1"[1]
`

// pollPeriod is how long the bridge waits for packets in one call, in ms.
// Calls to send have to wait for it.
const pollPeriod = 5

// bridge is a system whose devices are those that the preload library shows to
// libc. A device file is one end of a pair of sockets; whole packets go between
// the other end and libc, byte by byte as the Port wrote them.
type bridge struct {
	t *testing.T
	s *shim

	mu    sync.Mutex
	far   map[int]int // our descriptor to libc's
	calls []uint32    // ioctls that the library accepted
}

func newBridge(t *testing.T, s *shim) *bridge {
	return &bridge{t: t, s: s, far: map[int]int{}}
}

func (b *bridge) kernel() string { return "preload" }

func (b *bridge) open(path string) (int, error) {
	far, err := b.s.openFile(path, unix.O_RDWR|unix.O_NONBLOCK)
	if err != nil {
		return -1, err
	}
	near, peer := socketPair(b.t)
	var pumps sync.WaitGroup
	b.t.Cleanup(func() {
		_ = unix.Shutdown(peer, unix.SHUT_RDWR)
		pumps.Wait()
	})
	b.mu.Lock()
	b.far[near] = far
	b.mu.Unlock()
	stop := make(chan struct{})
	pumps.Go(func() { b.outgoing(peer, far, stop) })
	if strings.Contains(path, "umad") {
		pumps.Go(func() { b.incoming(peer, far, stop) })
	}
	return near, nil
}

func (b *bridge) ioctl(fd int, request uint32, arg []byte) error {
	b.mu.Lock()
	far := b.far[fd]
	b.mu.Unlock()
	_, out, err := b.s.call(opIoctl, far, uint64(request), arg)
	if err == nil {
		copy(arg, out)
		b.mu.Lock()
		b.calls = append(b.calls, request)
		b.mu.Unlock()
	}
	return err
}

// outgoing passes on the writes of the port, until it closes the file.
func (b *bridge) outgoing(peer, far int, stop chan<- struct{}) {
	defer close(stop)
	buf := make([]byte, maxPacket)
	for {
		n, err := unix.Read(peer, buf)
		if n <= 0 || err != nil {
			break
		}
		if sent, _, err := b.s.call(opWrite, far, 0, buf[:n]); err != nil || sent != n {
			b.t.Errorf("the library took %d of %d bytes: %v", sent, n, err)
		}
	}
	if _, _, err := b.s.call(opClose, far, 0, nil); err != nil {
		b.t.Errorf("close in the library: %v", err)
	}
}

// incoming passes on the packets that the library has for reading.
func (b *bridge) incoming(peer, far int, stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		ready, _, err := b.s.call(opPoll, far, pollPeriod, nil)
		var data []byte
		if err == nil && ready > 0 {
			_, data, err = b.s.call(opRead, far, uint64(maxPacket), nil)
		}
		if errors.Is(err, unix.EBADF) {
			return // closed a moment ago
		}
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			b.t.Errorf("read from the library: %v", err)
			return
		}
		if len(data) == 0 {
			continue
		}
		if _, err := unix.Write(peer, data); err != nil && err != unix.EPIPE {
			b.t.Errorf("hand on %d bytes: %v", len(data), err)
		}
	}
}

// shortHeader is a system that knows no ENABLE_PKEY.
type shortHeader struct{ *bridge }

func (s shortHeader) ioctl(fd int, request uint32, arg []byte) error {
	if request == ioctlEnablePKey {
		return unix.EINVAL
	}
	return s.bridge.ioctl(fd, request, arg)
}

// preloaded is a port that sits on node "sm" through the preload library.
type preloaded struct {
	*Port
	bridge *bridge
	lab    *ibsimlab.Lab
}

// dialPreload attaches as a subnet manager. The library uses the long header only for programs that have opened a port by
// libibumad before, regardless of ENABLE_PKEY.
func dialPreload(t *testing.T, netlist []byte, f form) preloaded {
	t.Helper()
	return dialIn(t, ibsimtest.Start(t, netlist), f)
}

// dialIn is dialPreload in a lab that runs.
func dialIn(t *testing.T, lab *ibsimlab.Lab, f form) preloaded {
	t.Helper()
	s := startShim(t, lab, "sm")
	b := newBridge(t, s)
	var sys system = shortHeader{b}
	if f == form64 {
		sys = b
		if _, _, err := s.call(opLongHeader, 0, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	// The library writes its sysfs at the first look at any file of it.
	if _, err := s.openFile("/sys/class/infiniband_mad/abi_version", unix.O_RDONLY); err != nil {
		t.Fatal(err)
	}
	p, err := dial(t.Context(), Options{AsSM: true, Sysfs: s.sysfs(t)}, sys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return preloaded{p, b, lab}
}

// TestPreload runs a port against the library that shows a simulated fabric as /dev/infiniband/umad0. Functions that the
// library lacks (the second registration, timeouts, methods) are tested with a fake device.
func TestPreload(t *testing.T) {
	for _, tt := range []struct {
		name string
		form form
	}{
		{"header of 56 bytes", form56},
		{"header of 64 bytes", form64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := dialPreload(t, []byte(twoHosts), tt.form)
			if p.recv.form != tt.form {
				t.Fatalf("header of %d bytes", p.recv.form)
			}
			t.Run("sysfs", p.testSysfs)
			t.Run("registration", p.testRegistration)
			t.Run("directed routes", p.testDirectedRoutes)
			t.Run("LID routes", p.testLIDRoutes)
			t.Run("own node", func(t *testing.T) { checkOwnNode(t, p.Port) })
			t.Run("burst", func(t *testing.T) { checkBurst(t, p.Port) })
			// The simulator returns a request at once, the kernel only after a timeout; the library shows both alike.
			t.Run("silence", func(t *testing.T) { checkSilence(t, p.Port) })
			t.Run("IsSM", p.testIsSM)
			t.Run("requests of others", p.testRequests)
			t.Run("subnet administration", func(t *testing.T) { checkLane(t, p.Port) })
		})
	}
}

func (p preloaded) testSysfs(t *testing.T) {
	device, num := p.Device()
	if device != "ibsim0" || num != 1 || p.GUID() != 0x0020000000000001 {
		t.Errorf("attached to %s port %d, GUID %v", device, num, p.GUID())
	}
}

// testRegistration checks the form that the library accepted: it refuses the second form, as kernels before 2014 do.
func (p preloaded) testRegistration(t *testing.T) {
	want := []uint32{ioctlRegister, ioctlRegister}
	if p.recv.form == form64 {
		want = append([]uint32{ioctlEnablePKey}, want...)
	}
	if diff := cmp.Diff(p.bridge.calls, want); diff != "" {
		t.Errorf("accepted calls: got-, want+\n%s", diff)
	}
	dr, lr := p.send.agents[mad.ClassSubnDR], p.send.agents[mad.ClassSubn]
	if dr == lr || dr < 0 || lr < 0 {
		t.Errorf("agents %d and %d", dr, lr)
	}
}

func (p preloaded) testDirectedRoutes(t *testing.T) {
	for _, tt := range []struct {
		name  string
		route []ib.PortNum
		want  ib.GUID
	}{
		{"ourselves", nil, 0x0020000000000000},
		{"the switch", []ib.PortNum{1}, 0x0010000100000001},
		{"the other host", []ib.PortNum{1, 2}, 0x0020000000000100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := roundTrip(t, p, get(7, mad.AttrNodeInfo, tt.route...))
			var ni mad.NodeInfo
			if err := mad.Decode(in.MAD.Data(), &ni); err != nil {
				t.Fatal(err)
			}
			if in.Undelivered || in.MAD.Method() != mad.MethodGetResp || in.MAD.TID() != 7 || ni.NodeGUID != tt.want {
				t.Errorf("%v %v of %v, want %v", in.MAD.Method(), in.MAD.TID(), ni.NodeGUID, tt.want)
			}
		})
	}
}

// testLIDRoutes sets the LID of our port and sends requests to it. Other ports have no LIDs in a fabric without a subnet
// manager.
func (p preloaded) testLIDRoutes(t *testing.T) {
	const lid = 5
	p.setLID(t, lid)
	ask := transport.Packet{LID: lid}
	mad.NewSMP(&ask.MAD, mad.Header{Method: mad.MethodGet, TID: 10, Attr: mad.AttrNodeInfo}, nil, ib.MKey{})
	in := p.answered(t, ask)
	if in.LID != lid || in.QP != 0 || in.MAD.Class() != mad.ClassSubn {
		t.Errorf("answer from %v QP %d, class %v", in.LID, in.QP, in.MAD.Class())
	}
}

// setLID sets the LID of the port at the end of a route.
func (p preloaded) setLID(t *testing.T, lid ib.LID, route ...ib.PortNum) {
	t.Helper()
	in := p.answered(t, get(8, mad.AttrPortInfo, route...))
	var pi mad.PortInfo
	if err := mad.Decode(in.MAD.Data(), &pi); err != nil {
		t.Fatal(err)
	}
	pi.LID, pi.MasterSMLID, pi.PortState, pi.PortPhysicalState = lid, 1, ib.PortNop, ib.PhysNop
	set := get(9, mad.AttrPortInfo, route...)
	set.MAD.SetMethod(mad.MethodSet)
	if err := mad.Encode(set.MAD.Data(), &pi); err != nil {
		t.Fatal(err)
	}
	p.answered(t, set)
}

// answered sends a request that must be done.
func (p preloaded) answered(t *testing.T, out transport.Packet) transport.Packet {
	t.Helper()
	in := roundTrip(t, p, out)
	if in.Undelivered || in.MAD.Status() != 0 || in.MAD.TID() != out.MAD.TID() {
		t.Fatalf("%v %v: %v, undelivered %v", out.MAD.Method(), out.MAD.Attr(), in.MAD.Status(), in.Undelivered)
	}
	return in
}

// testIsSM has a third-party tool look for the bit, besides ourselves.
func (p preloaded) testIsSM(t *testing.T) {
	checkIsSM(t, p.Port)
	out := ibsimtest.Diag(t, p.lab, "h1", "smpquery", "-D", "portinfo", "0,1,1", "1")
	if !strings.Contains(out, "IsSM\n") {
		t.Errorf("smpquery sees no IsSM:\n%s", out)
	}
}

// testRequests has another client ask us for SMInfo, over a directed route,
// and answers.
func (p preloaded) testRequests(t *testing.T) {
	other, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: p.lab.Socket(), Node: "h1"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Send([]transport.Packet{get(11, mad.AttrSMInfo, 1, 1)}); err != nil {
		t.Fatal(err)
	}
	in := receive(t, p)
	for in.MAD.Attr() != mad.AttrSMInfo { // opening issm makes the library send a trap
		in = receive(t, p)
	}
	if in.Undelivered || in.MAD.Method() != mad.MethodGet || uint32(in.MAD.TID()) != 11 {
		t.Fatalf("asked %v %v", in.MAD.Method(), in.MAD.TID())
	}
	in.MAD.Respond(0)
	in.MAD.Data()[20] = 0x53 // priority 5, master
	if _, err := p.Send([]transport.Packet{in}); err != nil {
		t.Fatal(err)
	}
	answer := receive(t, other)
	if answer.MAD.Method() != mad.MethodGetResp || answer.MAD.Data()[20] != 0x53 || uint32(answer.MAD.TID()) != 11 {
		t.Errorf("answered %v %v % x", answer.MAD.Method(), answer.MAD.TID(), answer.MAD.Data())
	}
}

// TestPreloadBringsUpFabric runs the subnet manager over the port until the
// fabric is settled, and has third-party tools look at it from another host.
func TestPreloadBringsUpFabric(t *testing.T) {
	ibsimtest.Need(t, "iblinkinfo")
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 16, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := l.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	p := dialPreload(t, text.Bytes(), form64)
	err = driver.Run(t.Context(), driver.Options{
		Port: p, Core: sm.Config{Enforcement: sm.Accepted}, Until: driver.UntilSettled,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); s != (Stats{}) {
		t.Errorf("%+v", s)
	}
	links := ibsimtest.Diag(t, p.lab, "h1", "iblinkinfo", "-l")
	if !strings.Contains(links, "Active/") || strings.Contains(links, "Initialize/") || strings.Contains(links, "Armed/") {
		t.Errorf("iblinkinfo:\n%s", links)
	}
}

// TestPreloadLane has another client ask subnet administration, whose lane has a
// descriptor of its own, while one of its SMPs comes to the port.
func TestPreloadLane(t *testing.T) {
	lab := ibsimtest.Start(t, []byte(twoHosts))
	manager, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: lab.Socket(), Node: "sm", AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	var lid ib.LID
	err = driver.Run(t.Context(), driver.Options{
		Port: manager, Core: sm.Config{Enforcement: sm.Accepted}, Until: driver.UntilSettled,
		OnView: func(v *sm.View) {
			if id := v.Fabric.PortByGUID(manager.GUID()); id != topo.None {
				lid = v.Fabric.Port(id).LID
			}
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := dialIn(t, lab, form64)
	l, err := p.SA()
	if err != nil {
		t.Fatal(err)
	}
	other, err := ibsim.Dial(t.Context(), ibsim.Options{Socket: lab.Socket(), Node: "h1"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := p.SetIsSM(true); err != nil { // only then the library gets requests
		t.Fatal(err)
	}
	ask := saQuestion(21)
	ask.LID = lid
	if _, err := other.Send([]transport.Packet{ask, get(22, mad.AttrSMInfo, 1, 1)}); err != nil {
		t.Fatal(err)
	}
	in := make([]transport.Packet, 2)
	for n := 0; n == 0; {
		if err := l.Wait(); err != nil {
			t.Fatal(err)
		}
		if n, err = l.TryReceive(in); err != nil || n > 1 {
			t.Fatal(n, err)
		}
	}
	if m := &in[0].MAD; m.Class() != mad.ClassSubnAdm || m.Method() != mad.MethodGet || uint32(m.TID()) != 21 || in[0].QP != 1 || in[0].LID == 0 {
		t.Fatalf("the lane got %+v from %v", m.Header(), in[0].LID)
	}
	smp := receive(t, p)
	for smp.MAD.Attr() == mad.AttrNotice { // opening issm makes the library send a trap
		smp = receive(t, p)
	}
	if smp.MAD.Attr() != mad.AttrSMInfo || uint32(smp.MAD.TID()) != 22 {
		t.Errorf("the port got %+v", smp.MAD.Header())
	}
	in[0].MAD.Respond(mad.StatusNoRecords)
	if n, err := l.TrySend(in[:1]); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if m := receive(t, other); m.MAD.Method() != mad.MethodGetResp || m.MAD.Status() != mad.StatusNoRecords || uint32(m.MAD.TID()) != 21 || m.LID != lid {
		t.Errorf("answer %+v from %v", m.MAD.Header(), m.LID)
	}
}
