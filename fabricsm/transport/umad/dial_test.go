package umad

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"portcullis/fabricsm/mad"
)

// TestRegister covers the existing kernels, by their answers.
func TestRegister(t *testing.T) {
	const open, pkey = "open /fake/infiniband/umad3", "ENABLE_PKEY"
	for _, tt := range []struct {
		name string
		fake fake
		form form
		want []string
	}{
		{"today", fake{}, form64, []string{open, pkey, "REGISTER_AGENT2 0x81", "REGISTER_AGENT2 0x1"}},
		{
			"before 2014",
			fake{second: unix.ENOTTY},
			form64,
			[]string{open, pkey, "REGISTER_AGENT2 0x81", "REGISTER_AGENT 0x81", "REGISTER_AGENT 0x1"},
		},
		{
			"before 2014, with the older refusal",
			fake{second: unix.EINVAL},
			form64,
			[]string{open, pkey, "REGISTER_AGENT2 0x81", "REGISTER_AGENT 0x81", "REGISTER_AGENT 0x1"},
		},
		{
			"before 2007",
			fake{pkey: unix.ENOTTY, second: unix.ENOTTY},
			form56,
			[]string{open, pkey, "REGISTER_AGENT2 0x81", "REGISTER_AGENT 0x81", "REGISTER_AGENT 0x1"},
		},
		{
			"the second registration brings the long header",
			fake{pkey: unix.EINVAL},
			form64,
			[]string{open, pkey, "REGISTER_AGENT2 0x81", "REGISTER_AGENT2 0x1"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newFake(t, &tt.fake)
			if diff := cmp.Diff(tt.fake.calls, tt.want); diff != "" {
				t.Errorf("calls: got-, want+\n%s", diff)
			}
			if p.send.form != tt.form || p.recv.form != tt.form {
				t.Errorf("headers of %d and %d bytes, want %d", p.send.form, p.recv.form, tt.form)
			}
			if a := p.send.agents; a[mad.ClassSubnDR] != 0 || a[mad.ClassSubn] != 1 || a[mad.ClassSubnAdm] != noAgent {
				t.Errorf("agents %d, %d, %d", a[mad.ClassSubnDR], a[mad.ClassSubn], a[mad.ClassSubnAdm])
			}
		})
	}
}

// A device of which the kernel shows only a part is waited for, as long as options say.
func TestDialWaits(t *testing.T) {
	t.Parallel()
	const part = "class/infiniband/mlx5_0/ports/1/state"
	half := func() string {
		return files(t, without(sysfs(hca{number: 3, device: "mlx5_0", port: 1, state: active}), part))
	}
	root := half()
	time.AfterFunc(3*look, func() {
		if err := os.WriteFile(filepath.Join(root, part), []byte(active+"\n"), 0o644); err != nil {
			t.Error(err)
		}
	})
	p, err := dial(t.Context(), Options{Sysfs: root, Dev: "/fake", Wait: time.Minute}, &fake{t: t})
	if err != nil {
		t.Fatalf("a device that is registered whole after a while: %v", err)
	}
	p.Close()

	_, err = dial(t.Context(), Options{Sysfs: half(), Dev: "/fake", Wait: 2 * look}, &fake{t: t})
	e, ok := errors.AsType[*UnfinishedError](err)
	if !ok || e.Waited < 2*look || !strings.Contains(err.Error(), "mlx5_0 is not registered whole after ") {
		t.Errorf("a device that never is: %v, want that it is not registered whole", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(2*look, cancel)
	if _, err := dial(ctx, Options{Sysfs: half(), Dev: "/fake", Wait: time.Hour}, &fake{t: t}); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller gave up: %v", err)
	}
	f := &fake{t: t, umad: unix.ENOENT}
	if _, err := dial(t.Context(), Options{Sysfs: files(t, sysfs(hca{number: 3, device: "mlx5_0", port: 1, state: active})), Dev: "/fake", Wait: 2 * look}, f); !errors.Is(err, unix.ENOENT) || len(f.calls) < 2 {
		t.Errorf("a device that udev has not come to: %v after %d tries, want several", err, len(f.calls))
	}
}

func TestMoreAgents(t *testing.T) {
	f := &fake{t: t}
	p, err := f.dial(Options{Agents: []Agent{{Class: mad.ClassSubnAdm, Version: 2, Methods: []mad.Method{mad.MethodGet}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.send.agents[mad.ClassSubnAdm]; got != 2 {
		t.Errorf("subnet administration has agent %d", got)
	}
}

func TestDialErrors(t *testing.T) {
	const at = "/fake/infiniband/umad3 (mlx5_0 port 1): "
	for _, tt := range []struct {
		name string
		fake fake
		is   error
		want string // beginning of the message, and a word of the advice
		hint string
	}{
		{"no permission", fake{umad: unix.EACCES}, os.ErrPermission, "open /fake/infiniband/umad3: permission denied: ", "udev rule"},
		{"device policy", fake{umad: unix.EPERM}, os.ErrPermission, "open /fake/infiniband/umad3: operation not permitted: ", "DevicePolicy"},
		{"no device file", fake{umad: unix.ENOENT}, os.ErrNotExist, "open /fake/infiniband/umad3: no such file or directory: ", "/dev"},
		{"device went away", fake{umad: unix.ENXIO}, unix.ENXIO, "open /fake/infiniband/umad3: no such device or address: ", "gone away"},
		{
			"another subnet manager",
			fake{second: unix.EINVAL, register: unix.EINVAL},
			unix.EINVAL,
			at + "register for class SubnDR with Linux 6.11.3-test: invalid argument: ", "another subnet manager",
		},
		{
			"SELinux",
			fake{second: unix.EACCES},
			unix.EACCES,
			at + "register for class SubnDR with Linux 6.11.3-test: permission denied: ", "SELinux",
		},
		{
			"a virtual function",
			fake{second: unix.EPROTONOSUPPORT},
			unix.EPROTONOSUPPORT,
			at + "register for class SubnDR with Linux 6.11.3-test: protocol not supported: ", "virtual function",
		},
		{
			"not a umad device",
			fake{second: unix.ENOTTY, register: unix.ENOTTY},
			unix.ENOTTY,
			at + "register for class SubnDR with Linux 6.11.3-test: inappropriate ioctl for device: ", "not a user MAD device",
		},
		{
			"went away while registering",
			fake{second: unix.EPIPE},
			unix.EPIPE,
			at + "register for class SubnDR with Linux 6.11.3-test: broken pipe: ", "gone away",
		},
		{"nonsense", fake{id: 32}, errAgentID, at + "register for class SubnDR with Linux 6.11.3-test: the kernel assigned an agent number above 31", "log"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.fake.t = t
			_, err := tt.fake.dial(Options{AsSM: true})
			if !errors.Is(err, tt.is) || !strings.HasPrefix(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.hint) {
				t.Errorf("%v\nwant %s...%s", err, tt.want, tt.hint)
			}
			if tt.fake.peer == 0 {
				return
			}
			if n, err := unix.Read(tt.fake.peer, make([]byte, 1)); n != 0 || err != nil {
				t.Errorf("the device was left open: %d, %v", n, err)
			}
		})
	}
}

// TestDialNeedsPoller shows a file that cannot be waited for.
func TestDialNeedsPoller(t *testing.T) {
	fd, err := unix.Open(t.TempDir(), unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, device: fd}
	if _, err := f.dial(Options{}); !errors.Is(err, os.ErrNoDeadline) {
		t.Errorf("error %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"timeout below a millisecond", Options{Timeout: time.Microsecond}, "kernel timeout 1µs: want 1ms to 1m"},
		{"negative timeout", Options{Timeout: -time.Second}, "kernel timeout -1s: want 1ms to 1m"},
		{"class of our own", Options{Agents: []Agent{{Class: mad.ClassSubn}}}, "agent for class Subn: there is one already"},
		{"class twice", Options{Agents: []Agent{{Class: mad.ClassPerf}, {Class: mad.ClassPerf}}}, "agent for class Perf: there is one already"},
		{
			"responses cannot be taken",
			Options{Agents: []Agent{{Class: mad.ClassPerf, Methods: []mad.Method{mad.MethodGetResp}}}},
			"agent for class Perf: takes GetResp, which is a response",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{t: t}
			if _, err := f.dial(tt.o); err == nil || err.Error() != tt.want {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			if len(f.calls) != 0 {
				t.Errorf("calls %v", f.calls)
			}
		})
	}
}

func TestDialEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestLinux dials with the real system: device files of a fixture that are not
// devices.
func TestLinux(t *testing.T) {
	tree := sysfs(hca{number: 3, device: "mlx5_0", port: 1, state: active})
	tree["infiniband/umad3"] = ""
	root := files(t, tree)
	_, err := Dial(t.Context(), Options{Sysfs: root, Dev: root})
	e, ok := errors.AsType[*RegisterError](err)
	if !ok || !errors.Is(err, unix.ENOTTY) {
		t.Fatalf("error %v", err)
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil && e.Kernel != strings.TrimSpace(string(release)) {
		t.Errorf("kernel %q, want %q", e.Kernel, release)
	}
}
