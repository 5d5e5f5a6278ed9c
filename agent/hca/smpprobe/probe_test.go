package smpprobe

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// fake is a device of which each request is answered by answer, or not at all.
type fake struct {
	register error
	sendErr  error
	answer   func(hops int) []byte // nil: silence
	sent     []mad.MAD
	waiting  [][]byte
}

func (f *fake) ioctl(request uintptr, arg []byte) error {
	if request != ioctlRegister || len(arg) != registrationSize || arg[20] != 0 || arg[21] != classDirected || arg[22] != 1 {
		return errors.New("not the registration of an agent of directed routes")
	}
	binary.NativeEndian.PutUint32(arg, 7)
	return f.register
}

func (f *fake) send(b []byte) error {
	if f.sendErr != nil {
		return f.sendErr
	}
	if binary.NativeEndian.Uint32(b) != 7 {
		return errors.New("of an agent that is not registered")
	}
	f.sent = append(f.sent, mad.MAD(b[headerSize:]))
	if a := f.answer(len(f.sent) - 1); a != nil {
		f.waiting = append(f.waiting, a)
	}
	return nil
}

func (f *fake) receive(b []byte, _ time.Duration) (int, error) {
	if len(f.waiting) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	n := copy(b, f.waiting[0])
	f.waiting = f.waiting[1:]
	return n, nil
}

func (f *fake) close() error { return nil }

// reply answers the request that was sent last.
func (f *fake) reply(status uint32, change func(*mad.MAD)) []byte {
	b := make([]byte, headerSize+madSize)
	binary.NativeEndian.PutUint32(b[4:], status)
	m := f.sent[len(f.sent)-1]
	m.SetMethod(mad.MethodGetResp)
	m.SetTID(m.TID() | 0xABCD<<32) // the kernel's half
	if change != nil {
		change(&m)
	}
	copy(b[headerSize:], m[:])
	return b
}

func TestProbe(t *testing.T) {
	none := func(int) []byte { return nil }
	for _, tt := range []struct {
		name  string
		setUp func(f *fake)
		want  attest.Firewall
		fails bool
		sent  int
	}{
		{"no queue pair 0", func(f *fake) { f.register = unix.EPROTONOSUPPORT }, attest.FirewallBlocks, false, 0},
		{"not allowed to ask", func(f *fake) { f.register = unix.EPERM }, attest.FirewallUnknown, true, 0},
		{"silence", func(f *fake) { f.answer = none }, attest.FirewallBlocks, false, 2},
		{"the kernel gives up", func(f *fake) {
			f.answer = func(int) []byte { return f.reply(statusTimeout, func(m *mad.MAD) { m.SetMethod(mad.MethodGet) }) }
		}, attest.FirewallBlocks, false, 2},
		{"a kernel that takes no registration", func(f *fake) { f.register = unix.EINVAL }, attest.FirewallUnknown, true, 0},
		{"the device goes", func(f *fake) { f.sendErr = unix.ENODEV }, attest.FirewallUnknown, true, 0},
		{"the port answers", func(f *fake) { f.answer = func(int) []byte { return f.reply(0, nil) } }, attest.FirewallOpen, false, 1},
		{"the switch answers, with an error", func(f *fake) {
			f.answer = func(n int) []byte {
				if n == 0 {
					return nil
				}
				return f.reply(0, func(m *mad.MAD) { m.SetStatus(mad.StatusUnsupportedMethodAttr) })
			}
		}, attest.FirewallOpen, false, 2},
		{"the answer to somebody else", func(f *fake) {
			f.answer = func(int) []byte { return f.reply(0, func(m *mad.MAD) { m.SetTID(1) }) }
		}, attest.FirewallBlocks, false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{answer: none}
			tt.setUp(f)
			got, err := probe(context.Background(), f, "umad0")
			if got != tt.want || (err != nil) != tt.fails || len(f.sent) != tt.sent {
				t.Errorf("%v, %v after %d requests; want %v, an error: %t, %d requests", got, err, len(f.sent), tt.want, tt.fails, tt.sent)
			}
		})
	}
	if _, err := Probe(context.Background(), t.TempDir()+"/umad9"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such device: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got, err := probe(ctx, &fake{answer: none}, "umad0"); got != attest.FirewallUnknown || err == nil {
		t.Errorf("cut off: %v, %v, want unknown", got, err)
	}
}

// The bytes are those that the Subnet Manager's own code makes.
func TestRequestBytes(t *testing.T) {
	for hops := range uint8(2) {
		var path []ib.PortNum
		if hops > 0 {
			path = append(path, 1)
		}
		var want mad.MAD
		r := mad.MakeRoute(path...)
		mad.NewSMP(&want, mad.Header{Method: mad.MethodGet, TID: 5, Attr: mad.AttrNodeInfo}, &r, ib.MKey{})
		if got := mad.MAD(request(7, 5, hops)[headerSize:]); got != want {
			t.Errorf("%d hops:\n%x\nwant\n%x", hops, got[:], want[:])
		}
	}
}

// TestProbeDeniedBySELinux checks that a host whose ports have SELinux labels denies the probe, and that the error says
// why.
func TestProbeDeniedBySELinux(t *testing.T) {
	f := &fake{register: unix.EACCES}
	got, err := probe(context.Background(), f, "umad0")
	if got != attest.FirewallUnknown || !errors.Is(err, unix.EACCES) || !strings.Contains(err.Error(), "SELinux") {
		t.Errorf("%v, %v; want an unknown firewall, and an error that names SELinux", got, err)
	}
}
