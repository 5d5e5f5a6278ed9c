package umad

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

func TestSend(t *testing.T) {
	f := &fake{id: 4}
	p := newFake(t, f)
	dr, lr := get(0x1111111122222222, mad.AttrNodeInfo, 1), transport.Packet{LID: 9}
	mad.NewSMP(&lr.MAD, mad.Header{Method: mad.MethodSet, TID: 5, Attr: mad.AttrPortInfo}, nil, ib.NewMKey(1))
	if n, err := p.Send([]transport.Packet{dr, lr}); n != 2 || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
	for i, want := range []transport.Packet{dr, lr} {
		b := make([]byte, int(form64)+mad.Size)
		form64.encode(b, uint32(4+i), DefaultTimeout, &want)
		if diff := cmp.Diff(f.taken(), b); diff != "" {
			t.Errorf("packet %d: got-, want+\n%s", i, diff)
		}
	}
}

func TestSendWithoutAgent(t *testing.T) {
	f := &fake{}
	p := newFake(t, f)
	out := []transport.Packet{get(1, mad.AttrNodeInfo), {QP: 1}, get(2, mad.AttrNodeInfo)}
	out[1].MAD.SetHeader(mad.Header{Class: mad.ClassPerf, Method: mad.MethodGet})
	n, err := p.Send(out)
	if e, ok := errors.AsType[*UnregisteredError](err); n != 1 || !ok || e.Class != mad.ClassPerf || errors.Is(err, transport.ErrLost) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := p.Send(out[2:]); n != 1 || err != nil {
		t.Errorf("afterwards: %d, %v", n, err)
	}
}

// TestReceiveTakesAll shows that one call takes exactly the available packets.
func TestReceiveTakesAll(t *testing.T) {
	f := &fake{}
	p := newFake(t, f)
	const count = 5
	for i := range count {
		said := answer(get(ib.TID(i), mad.AttrNodeInfo, 1))
		f.give(arrived(form64, 0, 0xFFFF, 0, said.MAD[:]))
	}
	in := make([]transport.Packet, 3)
	for _, want := range []int{3, 2} {
		if n, err := p.Receive(in); n != want || err != nil {
			t.Fatalf("%d, %v; want %d", n, err, want)
		}
	}
	if n, err := p.Receive(nil); n != 0 || err != nil {
		t.Errorf("into nothing: %d, %v", n, err)
	}
}

func TestReceiveSkipsMalformed(t *testing.T) {
	f := &fake{}
	p := newFake(t, f)
	said := answer(get(3, mad.AttrNodeInfo))
	f.give(make([]byte, 10))
	f.give(arrived(form64, 0, 1, 0, make([]byte, 2048)))
	f.give(arrived(form64, 0, 1, 0, said.MAD[:]))
	if in := receive(t, p); in.MAD.TID() != 3 {
		t.Errorf("received %v", in.MAD.TID())
	}
	if s := p.Stats(); s.Malformed != 2 {
		t.Errorf("%+v", s)
	}
}

func TestTimeoutComesBack(t *testing.T) {
	f := &fake{}
	p := newFake(t, f)
	ask := get(0x5_00000006, mad.AttrPortInfo, 1, 2)
	f.give(arrived(form64, statusTimeout, 0xFFFF, 0, ask.MAD[:mad.HeaderSize]))
	in := receive(t, p)
	if !in.Undelivered || in.MAD.TID() != 6 || in.MAD.Attr() != mad.AttrPortInfo || in.LID != ib.PermissiveLID {
		t.Errorf("%+v", in)
	}
}

// refusingDevice returns a descriptor that can be waited for, has nothing to read, and refuses every write with EINVAL.
func refusingDevice(t *testing.T) int {
	t.Helper()
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestRefusedComesBack makes the kernel refuse packets while a receiver waits, and while none does.
func TestRefusedComesBack(t *testing.T) {
	p := newFake(t, &fake{device: refusingDevice(t)})
	type batch struct {
		n    int
		err  error
		tids []ib.TID
	}
	got := make(chan batch)
	go func() {
		in := make([]transport.Packet, 2)
		for {
			b := batch{}
			b.n, b.err = p.Receive(in)
			for _, q := range in[:b.n] {
				if !q.Undelivered {
					b.err = fmt.Errorf("%v was not undelivered", q.MAD.TID())
				}
				b.tids = append(b.tids, q.MAD.TID())
			}
			got <- b
			if b.err != nil {
				return
			}
		}
	}()
	send := func(tids ...ib.TID) {
		t.Helper()
		var out []transport.Packet
		for _, tid := range tids {
			out = append(out, get(tid, mad.AttrNodeInfo, 1))
		}
		out = append(out, answer(get(99, mad.AttrNodeInfo, 1))) // it is not needed here
		if n, err := p.Send(out); n != len(out) || err != nil {
			t.Fatalf("send: %d, %v", n, err)
		}
	}
	var tids []ib.TID
	send(1, 1<<40|2, 3)
	send(4, 5)
	for len(tids) < 5 {
		b := <-got
		if b.err != nil {
			t.Fatal(b.err)
		}
		tids = append(tids, b.tids...)
	}
	if diff := cmp.Diff(tids, []ib.TID{1, 2, 3, 4, 5}); diff != "" {
		t.Errorf("got-, want+\n%s", diff)
	}
	if s := p.Stats(); s.Refused != 7 || !errors.Is(s.LastRefusal, unix.EINVAL) {
		t.Errorf("%+v", s)
	}
	p.Close()
	if b := <-got; !errors.Is(b.err, transport.ErrClosed) {
		t.Errorf("after Close: %+v", b)
	}
}

func TestCloseWakesReceive(t *testing.T) {
	p := newFake(t, &fake{})
	got := make(chan error)
	go func() {
		_, err := p.Receive(make([]transport.Packet, 1))
		got <- err
	}()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := <-got; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("receive: %v", err)
	}
	if _, err := p.Send([]transport.Packet{get(1, mad.AttrNodeInfo)}); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("send: %v", err)
	}
	if err := p.SetIsSM(true); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("set IsSM: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
}

func TestLost(t *testing.T) {
	f := &fake{}
	p := newFake(t, f)
	said := answer(get(3, mad.AttrNodeInfo))
	f.give(arrived(form64, 0, 1, 0, said.MAD[:]))
	if err := unix.Shutdown(f.peer, unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	in := make([]transport.Packet, 4)
	if n, err := p.Receive(in); n != 1 || err != nil {
		t.Errorf("what was there before: %d, %v", n, err)
	}
	const want = "mlx5_0 port 1 went away: transport: port is lost"
	for range 2 {
		if n, err := p.Receive(in); n != 0 || !errors.Is(err, transport.ErrLost) || err.Error() != want {
			t.Errorf("receive: %d, %v", n, err)
		}
	}
	if n, err := p.Send([]transport.Packet{get(1, mad.AttrNodeInfo)}); n != 0 || !errors.Is(err, transport.ErrLost) || err.Error() != want {
		t.Errorf("send: %d, %v", n, err)
	}
}

func TestWrap(t *testing.T) {
	p := newFake(t, &fake{})
	for _, tt := range []struct {
		err  error
		want string
	}{
		{unix.EIO, "mlx5_0 port 1 went away: transport: port is lost"},
		{unix.ENODEV, "mlx5_0 port 1 went away: transport: port is lost"},
		{errors.New("not pollable"), "mlx5_0 port 1 went away: transport: port is lost"},
		{unix.EFAULT, "mlx5_0 port 1: bad address: transport: port is lost"},
	} {
		if err := p.wrap(tt.err); err.Error() != tt.want || !errors.Is(err, transport.ErrLost) {
			t.Errorf("%v becomes %v", tt.err, err)
		}
	}
}

func TestSetIsSM(t *testing.T) {
	f := &fake{}
	p := newFake(t, f)
	f.calls = nil
	for _, on := range []bool{false, true, true, false, true} {
		if err := p.SetIsSM(on); err != nil {
			t.Fatal(err)
		}
		if on {
			continue
		}
		if f.issmPeer != 0 {
			wantClosed(t, f.issmPeer)
		}
	}
	if diff := cmp.Diff(f.calls, []string{"open /fake/infiniband/issm3", "open /fake/infiniband/issm3"}); diff != "" {
		t.Errorf("got-, want+\n%s", diff)
	}
	p.Close()
	wantClosed(t, f.issmPeer)
}

// wantClosed checks that the other end of a pair is closed.
func wantClosed(t *testing.T, peer int) {
	t.Helper()
	if n, err := unix.Read(peer, make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("still open: %d, %v", n, err)
	}
}

func TestSetIsSMErrors(t *testing.T) {
	p := newFake(t, &fake{issm: unix.EAGAIN})
	err := p.SetIsSM(true)
	if _, ok := errors.AsType[*TakenError](err); !ok || err.Error() != "open /fake/infiniband/issm3: another subnet manager runs on this port: stop it, for example OpenSM" {
		t.Errorf("taken: %v", err)
	}
	p = newFake(t, &fake{issm: unix.EACCES})
	if e, ok := errors.AsType[*OpenError](p.SetIsSM(true)); !ok || !errors.Is(e.Err, unix.EACCES) {
		t.Errorf("no permission: %v", e)
	}
}

func TestIdentity(t *testing.T) {
	p := newFake(t, &fake{})
	device, num := p.Device()
	if p.GUID() != 0x0002c90300a10301 || device != "mlx5_0" || num != 1 {
		t.Errorf("%v, %s port %d", p.GUID(), device, num)
	}
}

func TestNoAllocations(t *testing.T) {
	f := &fake{}
	p := newFake(t, f)
	out, in := []transport.Packet{get(1, mad.AttrNodeInfo, 1)}, make([]transport.Packet, 4)
	said := answer(out[0])
	give, sink := arrived(form64, 0, 1, 0, said.MAD[:]), make([]byte, maxPacket)
	got := testing.AllocsPerRun(100, func() {
		if _, err := p.Send(out); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Read(f.peer, sink); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Write(f.peer, give); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Receive(in); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations per packet sent and received", got)
	}
}

// TestSendWaits fills the device: Send blocks until there is room, and keeps
// the order.
func TestSendWaits(t *testing.T) {
	const count = 2000 // some socket buffers hold a few hundred
	f := &fake{}
	p := newFake(t, f)
	out := make([]transport.Packet, count)
	for i := range out {
		out[i] = get(ib.TID(i), mad.AttrNodeInfo, 1)
	}
	sent := make(chan error)
	go func() {
		n, err := p.Send(out)
		if err == nil && n != count {
			err = fmt.Errorf("sent %d packets", n)
		}
		sent <- err
	}()
	for i := range count {
		m := mad.MAD(f.taken()[form64:])
		if m.TID() != ib.TID(i) {
			t.Fatalf("packet %d has TID %v", i, m.TID())
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func BenchmarkSendReceive(b *testing.B) {
	f := &fake{}
	p := newFake(b, f)
	out, in := []transport.Packet{get(1, mad.AttrNodeInfo, 1)}, make([]transport.Packet, 4)
	said := answer(out[0])
	give, sink := arrived(form64, 0, 1, 0, said.MAD[:]), make([]byte, maxPacket)
	b.ReportAllocs()
	for b.Loop() {
		_, errSend := p.Send(out)
		_, errTaken := unix.Read(f.peer, sink)
		_, errGive := unix.Write(f.peer, give)
		_, errReceive := p.Receive(in)
		if err := errors.Join(errSend, errTaken, errGive, errReceive); err != nil {
			b.Fatal(err)
		}
	}
}
