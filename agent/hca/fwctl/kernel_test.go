package fwctl

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"portcullis/agent/hca/register"
)

// kernel stands for the driver: it answers FWCTL_RPC with out, or fails.
type kernel struct {
	deviceType uint32
	out        []byte // the firmware's answer, in hex
	longer     uint32 // number of bytes beyond the room that it claims to have returned
	fail       error
	scope      uint32
	in         []byte
}

func (k *kernel) ioctl(_ uintptr, request uint32, arg unsafe.Pointer) error {
	if k.fail != nil {
		return k.fail
	}
	if request == ioctlInfo {
		(*infoArg)(arg).outDeviceType = k.deviceType
		return nil
	}
	a := (*rpcArg)(arg)
	k.scope = a.scope
	k.in = append([]byte(nil), unsafe.Slice(at(&a.in), a.inLen)...)
	n := copy(unsafe.Slice(at(&a.out), a.outLen), k.out)
	a.outLen = uint32(n) + k.longer
	return nil
}

// at follows an address as the kernel does.
func at(address *uint64) *byte { return *(**byte)(unsafe.Pointer(address)) }

func (k *kernel) device(t *testing.T) (*Device, error) {
	t.Helper()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return open("/dev/fwctl/fwctl0", &node{f, k.ioctl})
}

// TestArguments: sizes and places of the fields are the kernel's.
func TestArguments(t *testing.T) {
	t.Parallel()
	if got := unsafe.Sizeof(infoArg{}); got != 24 {
		t.Errorf("struct fwctl_info has %d bytes, want 24", got)
	}
	if got := unsafe.Sizeof(rpcArg{}); got != 32 {
		t.Errorf("struct fwctl_rpc has %d bytes, want 32", got)
	}
	var a rpcArg
	if in, out := unsafe.Offsetof(a.in), unsafe.Offsetof(a.out); in != 16 || out != 24 {
		t.Errorf("in is at %d, out at %d, want 16 and 24", in, out)
	}
}

// TestAccessBytes checks the bytes that the kernel gets for a read of MLOCK (Linux, include/linux/mlx5/mlx5_ifc.h,
// access_register_in_bits).
func TestAccessBytes(t *testing.T) {
	t.Parallel()
	k := &kernel{deviceType: deviceTypeMLX5, out: unhex(t, "00000000 00000000 0000000000000000"+"00000001 00000000 0000000000000000")}
	d, err := k.device(t)
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Access(t.Context(), register.IDMLOCK, register.Read, make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	if want := unhex(t, "00000001 00000000 0000000000000000"); string(got) != string(want) {
		t.Errorf("got %x, want %x", got, want)
	}
	if want := unhex(t, "0805 0000 0000 0001 0000 402d 00000000"+strings.Repeat("00", 16)); string(k.in) != string(want) || k.scope != 1 {
		t.Errorf("the kernel was given scope %d and\n%x, want 1 and\n%x", k.scope, k.in, want)
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestErrors(t *testing.T) {
	t.Parallel()
	ok := strings.Repeat("00", 16)
	for _, tt := range []struct {
		name   string
		kernel kernel
		is     error
		want   string
	}{
		{"scope too low", kernel{fail: unix.EBADMSG}, unix.EBADMSG, "does not allow this command"},
		{"too long", kernel{fail: unix.EMSGSIZE}, unix.EMSGSIZE, "too short or too long"},
		{"gone", kernel{fail: unix.ENODEV}, unix.ENODEV, "was removed"},
		{"not root", kernel{fail: unix.EPERM}, unix.EPERM, "run as root"},
		{"refused by the firmware", kernel{out: unhex(t, "04000000 0000beef 0000000000000000")}, register.ErrNotSupported, "/dev/fwctl/fwctl0: MLOCK read"},
		{"empty", kernel{}, register.ErrShort, "too few bytes"},
		{"short register", kernel{out: unhex(t, ok+"00000001")}, ErrLength, "4 bytes, want 16"},
		{"more than there was room for", kernel{out: unhex(t, ok+ok), longer: 1}, nil, "returned 33 bytes, the buffer has 32"},
	} {
		k := tt.kernel
		fail := k.fail
		k.fail, k.deviceType = nil, deviceTypeMLX5
		d, err := k.device(t)
		if err != nil {
			t.Fatal(err)
		}
		k.fail = fail
		_, err = d.Access(t.Context(), register.IDMLOCK, register.Read, make([]byte, 16))
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want one with %q", tt.name, err, tt.want)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	if _, err := (&kernel{deviceType: 2}).device(t); !errors.Is(err, ErrNotMLX5) {
		t.Errorf("another kind of adapter: got %v", err)
	}
	if _, err := (&kernel{fail: unix.ENOTTY}).device(t); !errors.Is(err, unix.ENOTTY) {
		t.Errorf("another device: got %v", err)
	}
	if _, err := Open(os.DevNull); err == nil || !strings.Contains(err.Error(), "not a device node of fwctl") {
		t.Errorf("%s, by the running kernel: got %v", os.DevNull, err)
	}
	if _, err := Open(t.TempDir() + "/fwctl0"); err == nil || !strings.Contains(err.Error(), "mlx5_fwctl") {
		t.Errorf("no such node: got %v", err)
	}
}

// TestCanceled: no command leaves after its time.
func TestCanceled(t *testing.T) {
	t.Parallel()
	k := &kernel{deviceType: deviceTypeMLX5}
	d, err := k.device(t)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Access(ctx, register.IDMLOCK, register.Read, make([]byte, 16)); !errors.Is(err, context.Canceled) || k.in != nil {
		t.Errorf("got %v, and the kernel was given %x", err, k.in)
	}
}
