//go:build vm

package umad_test

import (
	"encoding/binary"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// user is a client of subnet administration that speaks to ib_umad itself, as rdma/ib_user_mad.h has it, and shares no code
// with ours.
type user struct {
	file *os.File
	id   uint32
}

const (
	userHead = 64 // of struct ib_user_mad with a P_Key index
	madSize  = 256

	register2   = 0xc0281b04 // IB_USER_MAD_REGISTER_AGENT2
	classSA     = 0x03
	methodGet   = 0x01
	wellKnownQK = 0x80010000
)

// openUser opens the device of an adapter and registers for subnet administration.
func openUser(t testing.TB, device string) *user {
	t.Helper()
	path := deviceFile("umad", device)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	var request [40]byte
	binary.NativeEndian.PutUint32(request[4:], 1) // queue pair
	request[8], request[9] = classSA, 2
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var errno unix.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, register2, uintptr(unsafe.Pointer(&request[0])))
	})
	if err != nil || errno != 0 {
		t.Fatalf("register with %s: %v, %v", path, err, errno)
	}
	return &user{f, binary.NativeEndian.Uint32(request[:])}
}

// question is a Get of subnet administration with a global route header.
type question struct {
	lid       uint16
	gid       [16]byte
	hops      byte
	attribute uint16
}

// answer is what ib_umad gave.
type answer []byte

func (a answer) method() byte { return a[userHead+3] }
func (a answer) global() bool { return a[32] != 0 }
func (a answer) source() (gid [16]byte) {
	copy(gid[:], a[36:])
	return gid
}

// ask sends a question and returns its answer.
func (u *user) ask(t testing.TB, q question) answer {
	t.Helper()
	b := make([]byte, userHead+madSize)
	binary.NativeEndian.PutUint32(b[0:], u.id)
	binary.NativeEndian.PutUint32(b[8:], 2000) // milliseconds
	binary.BigEndian.PutUint32(b[20:], 1)
	binary.BigEndian.PutUint32(b[24:], wellKnownQK)
	binary.BigEndian.PutUint16(b[28:], q.lid)
	b[32], b[34] = 1, q.hops
	copy(b[36:], q.gid[:])
	m := b[userHead:]
	m[0], m[1], m[2], m[3] = 1, classSA, 2, methodGet
	binary.BigEndian.PutUint64(m[8:], 0x7777)
	binary.BigEndian.PutUint16(m[16:], q.attribute)
	if n, err := u.file.Write(b); n != len(b) || err != nil {
		t.Fatalf("send: %d, %v", n, err)
	}
	if err := u.file.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	in := make([]byte, userHead+madSize)
	if n, err := u.file.Read(in); n != len(in) || err != nil {
		t.Fatalf("receive: %d, %v", n, err)
	}
	if status := binary.NativeEndian.Uint32(in[4:]); status != 0 {
		t.Fatalf("the kernel says of the question: %v", unix.Errno(status))
	}
	return in
}

// gidOf reads a GID as sysfs shows it.
func gidOf(t testing.TB, text string) (gid [16]byte) {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(text, ":", ""))
	if err != nil || len(b) != len(gid) {
		t.Fatalf("GID %q: %v", text, err)
	}
	copy(gid[:], b)
	return gid
}

// route is from where to where a packet with a global route header goes.
type route struct{ from, to [16]byte }

// globals counts the packets of a capture that have a global route header. Each must have a hop limit.
func globals(t testing.TB, file string) map[route]int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[route]int{}
	if len(b) < 24 || binary.NativeEndian.Uint32(b[20:]) != 247 {
		return out
	}
	const localHeader, globalHeader = 8, 40
	for b = b[24:]; len(b) >= 16; {
		size := int(binary.NativeEndian.Uint32(b[8:]))
		if len(b) < 16+size {
			break
		}
		p := b[16 : 16+size]
		b = b[16+size:]
		if len(p) < localHeader+globalHeader || p[1]&3 != 3 { // the next header is a global one
			continue
		}
		g := p[localHeader:]
		if g[7] == 0 {
			t.Error("a packet with a global route header has hop limit 0")
		}
		var r route
		copy(r.from[:], g[8:])
		copy(r.to[:], g[24:])
		out[r]++
	}
	return out
}
