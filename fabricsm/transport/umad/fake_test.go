package umad

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// get is a request over a directed route.
func get(tid ib.TID, attr mad.AttrID, route ...ib.PortNum) transport.Packet {
	p := transport.Packet{LID: ib.PermissiveLID}
	r := mad.MakeRoute(route...)
	mad.NewSMP(&p.MAD, mad.Header{Method: mad.MethodGet, TID: tid, Attr: attr}, &r, ib.MKey{})
	return p
}

// receive waits for one packet.
func receive(t testing.TB, p transport.Port) transport.Packet {
	t.Helper()
	in := make([]transport.Packet, 1)
	if n, err := p.Receive(in); n != 1 || err != nil {
		t.Fatalf("receive: %d, %v", n, err)
	}
	return in[0]
}

// roundTrip sends one packet and receives the next one.
func roundTrip(t testing.TB, p transport.Port, out transport.Packet) transport.Packet {
	t.Helper()
	if n, err := p.Send([]transport.Packet{out}); n != 1 || err != nil {
		t.Fatalf("send: %d, %v", n, err)
	}
	return receive(t, p)
}

// socketPair stands for a device file: it keeps packets apart, can be polled
// and does not block us. The peer's end blocks and is closed with the test.
func socketPair(t testing.TB) (near, peer int) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[1]) })
	return fds[0], fds[1]
}

// fake is a system with one HCA port, which plays a kernel as far as errors and
// numbers go. Packets go through a pair of sockets.
type fake struct {
	t        testing.TB
	pkey     error // of ENABLE_PKEY
	register error // of REGISTER_AGENT
	second   error // of REGISTER_AGENT2
	umad     error // of opening the devices
	issm     error
	id       uint32 // of the next agent
	device   int    // descriptor to show as the device; 0 for a socket

	calls    []string
	peer     int // the other end of the device
	sa       int // the same of its second descriptor
	issmPeer int
}

func (f *fake) kernel() string { return "6.11.3-test" }

func (f *fake) open(path string) (int, error) {
	f.calls = append(f.calls, "open "+path)
	if strings.HasPrefix(filepath.Base(path), "issm") {
		if f.issm != nil {
			return -1, f.issm
		}
		near, peer := socketPair(f.t)
		f.issmPeer = peer
		return near, nil
	}
	if f.umad != nil || f.device != 0 {
		return f.device, f.umad
	}
	near, peer := socketPair(f.t)
	if f.peer == 0 {
		f.peer = peer
	} else {
		f.sa = peer
	}
	return near, nil
}

func (f *fake) ioctl(_ int, request uint32, arg []byte) error {
	var name string
	var err error
	switch request {
	case ioctlEnablePKey:
		f.calls = append(f.calls, "ENABLE_PKEY")
		return f.pkey
	case ioctlRegister:
		name, err = fmt.Sprintf("REGISTER_AGENT %#x", arg[21]), f.register
	case ioctlRegister2:
		name, err = fmt.Sprintf("REGISTER_AGENT2 %#x", arg[8]), f.second
	default:
		f.t.Errorf("ioctl %#x", request)
	}
	f.calls = append(f.calls, name)
	if err == nil {
		binary.NativeEndian.PutUint32(arg, f.id)
		f.id++
	}
	return err
}

// dial attaches to the fake as to mlx5_0 port 1 on umad3.
func (f *fake) dial(o Options) (*Port, error) {
	o.Sysfs = files(f.t, sysfs(hca{number: 3, device: "mlx5_0", port: 1, state: active}))
	o.Dev = "/fake"
	p, err := dial(f.t.Context(), o, f)
	if err == nil {
		f.t.Cleanup(func() { p.Close() })
	}
	return p, err
}

// newFake is a port on a fake.
func newFake(t testing.TB, f *fake) *Port {
	t.Helper()
	f.t = t
	p, err := f.dial(Options{AsSM: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// give adds a packet that the fake device returns on read.
func (f *fake) give(b []byte) {
	f.t.Helper()
	if n, err := unix.Write(f.peer, b); n != len(b) || err != nil {
		f.t.Fatalf("give %d bytes: %d, %v", len(b), n, err)
	}
}

// taken returns the next write of the port.
func (f *fake) taken() []byte {
	f.t.Helper()
	b := make([]byte, maxPacket)
	n, err := unix.Read(f.peer, b)
	if err != nil {
		f.t.Fatal(err)
	}
	return b[:n]
}
