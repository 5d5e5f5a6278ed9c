package umad

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
)

// saQuestion is a request to subnet administration, from LID 9.
func saQuestion(tid ib.TID) transport.Packet {
	p := transport.Packet{LID: 9, QP: 1, PKeyIndex: 1}
	p.MAD.SetHeader(mad.Header{Class: mad.ClassSubnAdm, ClassVersion: mad.SAClassVersion, Method: mad.MethodGet, Attr: mad.AttrPathRecord, TID: tid})
	return p
}

// saReport is a request of ours.
func saReport(tid ib.TID) transport.Packet {
	p := saQuestion(tid)
	p.MAD.SetMethod(mad.MethodReport)
	return p
}

func newLane(t testing.TB, f *fake) (*Port, transport.SALane) {
	t.Helper()
	p := newFake(t, f)
	l, err := p.SA()
	if err != nil {
		t.Fatal(err)
	}
	return p, l
}

// wire is a packet as the kernel has it to read.
func wire(p transport.Packet) []byte {
	b := make([]byte, int(form64)+mad.Size)
	form64.encode(b, 0, 0, &p)
	return b
}

func giveTo(t testing.TB, peer int, b []byte) {
	t.Helper()
	if n, err := unix.Write(peer, b); n != len(b) || err != nil {
		t.Fatalf("give %d bytes: %d, %v", len(b), n, err)
	}
}

// The lane has a descriptor and an agent of its own.
func TestLane(t *testing.T) {
	f := &fake{id: 4}
	p, l := newLane(t, f)
	want := []string{
		"open /fake/infiniband/umad3", "ENABLE_PKEY", "REGISTER_AGENT2 0x81", "REGISTER_AGENT2 0x1",
		"open /fake/infiniband/umad3", "ENABLE_PKEY", "REGISTER_AGENT2 0x3",
	}
	if diff := cmp.Diff(f.calls, want); diff != "" {
		t.Errorf("calls: got-, want+\n%s", diff)
	}
	buf := make([]transport.Packet, 4)
	if n, err := l.TryReceive(buf); n != 0 || err != nil {
		t.Fatalf("nothing there: %d, %v", n, err)
	}
	if err := l.Pause(time.Microsecond); err != nil {
		t.Fatal(err)
	}
	said := answer(get(3, mad.AttrNodeInfo))
	f.give(arrived(form64, 0, 1, 0, said.MAD[:]))
	giveTo(t, f.sa, wire(saQuestion(1<<40|7)))
	giveTo(t, f.sa, wire(saQuestion(8)))
	if err := l.Wait(); err != nil {
		t.Fatal(err)
	}
	n, err := l.TryReceive(buf)
	if diff := cmp.Diff(buf[:n], []transport.Packet{saQuestion(1<<40 | 7), saQuestion(8)}); diff != "" || err != nil {
		t.Fatalf("%v: got-, want+\n%s", err, diff)
	}
	if in := receive(t, p); in.MAD.TID() != 3 {
		t.Errorf("the port received %v", in.MAD.TID())
	}
	buf[0].MAD.Respond(mad.StatusOK)
	if n, err := l.TrySend(buf[:1]); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	sent := make([]byte, maxPacket)
	n, err = unix.Read(f.sa, sent)
	expect := make([]byte, int(form64)+mad.Size)
	form64.encode(expect, 6, DefaultTimeout, &buf[0])
	if diff := cmp.Diff(sent[:n], expect); diff != "" || err != nil {
		t.Errorf("%v: got-, want+\n%s", err, diff)
	}
	if l.Dropped() != 0 {
		t.Errorf("%d dropped", l.Dropped())
	}
}

func TestLaneErrors(t *testing.T) {
	f := &fake{}
	p := newFake(t, f)
	f.register, f.second = unix.EINVAL, unix.EINVAL
	_, err := p.SA()
	if e, ok := errors.AsType[*RegisterError](err); !ok || e.Class != mad.ClassSubnAdm {
		t.Errorf("taken: %v", err)
	}
	wantClosed(t, f.sa)
	f.umad = unix.ENODEV
	_, err = p.SA()
	if e, ok := errors.AsType[*OpenError](err); !ok || e.Path != "/fake/infiniband/umad3" {
		t.Errorf("gone: %v", err)
	}
}

// A lane never waits for room. Packets without room are sent later.
func TestLaneTrySend(t *testing.T) {
	const count = 2000 // some socket buffers hold a few hundred
	f := &fake{}
	_, l := newLane(t, f)
	out := make([]transport.Packet, count)
	for i := range out {
		out[i] = answer(saQuestion(ib.TID(i)))
	}
	sent, err := l.TrySend(out)
	if sent == 0 || sent == count || err != nil {
		t.Fatalf("sent %d of %d, %v", sent, count, err)
	}
	b := make([]byte, maxPacket)
	for i := range count {
		if n, err := unix.Read(f.sa, b); err != nil || n < int(form64) {
			t.Fatal(n, err)
		}
		if m := mad.MAD(b[form64:]); m.TID() != ib.TID(i) {
			t.Fatalf("packet %d has TID %v", i, m.TID())
		}
		n, err := l.TrySend(out[sent:])
		if sent += n; err != nil {
			t.Fatal(err)
		}
	}
	if n, err := l.TrySend([]transport.Packet{get(1, mad.AttrNodeInfo)}); n != 0 {
		t.Errorf("of another class: %d, %v", n, err)
	} else if _, ok := errors.AsType[*UnregisteredError](err); !ok {
		t.Errorf("of another class: %v", err)
	}
}

// A Report that the kernel refuses comes back, and wakes the waiting receiver.
func TestLaneRefused(t *testing.T) {
	p, err := (&fake{t: t, device: refusingDevice(t)}).dial(Options{})
	if err != nil {
		t.Fatal(err)
	}
	p.sys.(*fake).device = refusingDevice(t)
	l, err := p.SA()
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		buf := make([]transport.Packet, 1)
		for want := ib.TID(1); want <= 3; {
			n, err := l.TryReceive(buf)
			if err == nil && n == 0 {
				err = l.Wait()
			}
			if err == nil && n > 0 && (!buf[0].Undelivered || buf[0].MAD.TID() != want) {
				err = fmt.Errorf("%v came back, undelivered %v", buf[0].MAD.TID(), buf[0].Undelivered)
			}
			if err != nil {
				got <- err
				return
			}
			want += ib.TID(n)
		}
		got <- nil
		got <- l.Pause(time.Hour)
	}()
	for _, some := range [][]transport.Packet{{saReport(1), answer(saQuestion(9))}, {saReport(2), saReport(3)}} {
		if n, err := l.TrySend(some); n != len(some) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	if s := p.Stats(); s.Refused != 4 || !errors.Is(s.LastRefusal, unix.EINVAL) {
		t.Errorf("%+v", s)
	}
	p.Close()
	if err := <-got; !errors.Is(err, transport.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := l.TryReceive(make([]transport.Packet, 1)); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestLaneAllocatesNothing(t *testing.T) {
	f := &fake{}
	_, l := newLane(t, f)
	give, sink := wire(saQuestion(1)), make([]byte, maxPacket)
	buf := make([]transport.Packet, 4)
	got := testing.AllocsPerRun(100, func() {
		if _, err := unix.Write(f.sa, give); err != nil {
			t.Fatal(err)
		}
		if err := l.Wait(); err != nil {
			t.Fatal(err)
		}
		if n, err := l.TryReceive(buf); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		buf[0].MAD.Respond(mad.StatusOK)
		if n, err := l.TrySend(buf[:1]); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if _, err := unix.Read(f.sa, sink); err != nil {
			t.Fatal(err)
		}
	})
	if got != 0 {
		t.Errorf("%v allocations per packet received and answered", got)
	}
}
