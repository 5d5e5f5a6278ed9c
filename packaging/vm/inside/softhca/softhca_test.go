//go:build vm

// Package softhca_test runs in a virtual machine and tests the adapter without hardware under Linux's own InfiniBand stack.
// The other labs rely on that adapter.
package softhca_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"portcullis/fabricsm/sim/softhcaserver"
	"portcullis/fabricsm/transport/softhca"
	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/inside/guest"
	"portcullis/packaging/vm/inside/verbs"
)

// soon bounds what happens at once: emulated machines are slow.
const soon = 30 * time.Second

func TestFourPorts(t *testing.T) {
	f := adapter.NewFabric(t)
	a := f.Plug(t, "quad", "mlx5_0")
	dir := adapter.Sysfs("mlx5_0")
	for file, want := range map[string]string{
		"node_guid": "0020:0000:0000:0040", "node_type": "1: CA", "node_desc": "quad", "fw_ver": "28.43.1014", "hca_type": "MT4129",
	} {
		if got := guest.Read(t, filepath.Join(dir, file)); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	for port := 1; port <= 4; port++ {
		if got := adapter.PortFile(t, "mlx5_0", port, "state"); got != "2: INIT" {
			t.Errorf("port %d is %q, want INIT", port, got)
		}
		if got, want := adapter.PortFile(t, "mlx5_0", port, "gids/0"), "fe80:0000:0000:0000:0020:0000:0000:004"+string(rune('0'+port)); got != want {
			t.Errorf("port %d has GID %s, want %s", port, got, want)
		}
		if got := adapter.PortFile(t, "mlx5_0", port, "pkeys/0"); got != "0xffff" {
			t.Errorf("port %d has P_Key %s, want 0xffff", port, got)
		}
		if file := adapter.Umad(t, "mlx5_0", port); !guest.Exists(file) {
			t.Errorf("%s is missing", file)
		}
	}
	if guest.Exists(filepath.Join(dir, "ports/5")) {
		t.Error("the adapter has a fifth port")
	}
	if out := guest.Do(t, "smpquery", "-C", "mlx5_0", "-P", "3", "-D", "nodeinfo", "0,3"); !strings.Contains(out, "Switch") {
		t.Errorf("behind port 3 there is no switch:\n%s", out)
	}
	adapter.Pull(t, a, "mlx5_0")
	if left, _ := filepath.Glob("/dev/infiniband/umad*"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestManagers(t *testing.T) {
	f := adapter.NewFabric(t)
	f.Plug(t, "sm", "mlx5_0")
	f.Plug(t, "h1", "mlx5_1")
	adapter.OpenSM(t, "mlx5_0")
	for _, tt := range []struct {
		program string
		args    []string
		want    string
	}{
		{"ibstat", []string{"mlx5_0"}, "State: Active"},
		{"ibstat", []string{"mlx5_1"}, "State: Active"},
		{"ibnetdiscover", []string{"-C", "mlx5_1"}, `"S-0010000100000001"`},
		{"iblinkinfo", []string{"-C", "mlx5_0"}, "Active/  LinkUp"},
		{"smpquery", []string{"-C", "mlx5_0", "nodeinfo", adapter.PortFile(t, "mlx5_1", 1, "lid")}, "Ca"},
		{"smpquery", []string{"-C", "mlx5_1", "-D", "portinfo", "0,1", "1"}, "Lid"},
		{"perfquery", []string{"-C", "mlx5_0", adapter.PortFile(t, "mlx5_1", 1, "lid"), "1"}, "PortXmitPkts"},
		{"perfquery", []string{"-C", "mlx5_1", adapter.PortFile(t, "mlx5_1", 1, "lid"), "1"}, "PortXmitPkts"},
	} {
		if e := guest.Try(t, tt.program, tt.args...); e.Code != 0 || !strings.Contains(e.Out, tt.want) {
			t.Errorf("%s %v: exit status %d, want %q in\n%s", tt.program, tt.args, e.Code, tt.want, e.All)
			logCounters(t)
			t.Logf("%+v", f.Stats())
		}
	}
}

// logCounters shows what the module counted.
func logCounters(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("/sys/class/infiniband/*/ports/*/hw_counters/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if n := guest.Read(t, name); n != "0" && !strings.HasSuffix(name, "lifespan") {
			t.Logf("%s: %s", strings.TrimPrefix(name, "/sys/class/infiniband/"), n)
		}
	}
}

func TestHalfRegistered(t *testing.T) {
	const hold = 2 * time.Second
	f := adapter.NewFabric(t)
	a := f.Begin(t, softhcaserver.Options{Node: "h1", Name: "mlx5_0", Hold: hold})
	dir := adapter.Sysfs("mlx5_0")
	guest.Eventually(t, adapter.RegisterLimit, "the device is not in sysfs", func() bool { return guest.Exists(dir) })
	if guest.Exists(filepath.Join(dir, "ports/1/state")) {
		t.Error("the device has its port already")
	}
	adapter.Registered(t, a)
	if got := adapter.PortFile(t, "mlx5_0", 1, "state"); got != "2: INIT" {
		t.Errorf("the port is %q, want INIT", got)
	}
	// Pulled while it is half registered.
	adapter.Pull(t, a, "mlx5_0")
	again := f.Begin(t, softhcaserver.Options{Node: "h1", Name: "mlx5_0", Hold: time.Minute})
	guest.Eventually(t, adapter.RegisterLimit, "the device is not in sysfs", func() bool { return guest.Exists(dir) })
	adapter.Pull(t, again, "mlx5_0")
}

func TestFirmware(t *testing.T) {
	f := adapter.NewFabric(t)
	a := f.Plug(t, "h1", "mlx5_0")
	lid := filepath.Join(adapter.Sysfs("mlx5_0"), "ports/1/lid")
	const late = 300 * time.Millisecond
	a.Behave(softhcaserver.Behavior{Delay: late})
	begin := time.Now()
	if got := guest.Read(t, lid); got != "0x0" {
		t.Errorf("LID %s, want 0x0", got)
	}
	if took := time.Since(begin); took < late {
		t.Errorf("a late answer came after %v", took)
	}
	a.Behave(softhcaserver.Behavior{Silent: true})
	begin = time.Now()
	if err := read(lid); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("firmware that does not answer: %v, want ETIMEDOUT", err)
	}
	if took := time.Since(begin); took > soon {
		t.Errorf("it was waited for %v", took)
	}
	a.Behave(softhcaserver.Behavior{})
	if adapter.Counter(t, "mlx5_0", 1, "firmware_timeouts") == 0 {
		t.Error("the timeout was not counted")
	}
	if err := read(lid); err != nil {
		t.Errorf("after the firmware came back: %v", err)
	}
	// Answers that come after the kernel's time limit are counted and thrown away.
	a.Behave(softhcaserver.Behavior{Delay: 3 * time.Second})
	if err := read(lid); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("firmware that answers too late: %v, want ETIMEDOUT", err)
	}
	a.Behave(softhcaserver.Behavior{})
	guest.Eventually(t, soon, "the late answer was not counted", func() bool { return adapter.Counter(t, "mlx5_0", 1, "firmware_late") > 0 })
	// Pulled while the kernel waits for the firmware.
	a.Behave(softhcaserver.Behavior{Silent: true})
	ended := make(chan error, 1)
	go func() { ended <- read(lid) }()
	time.Sleep(50 * time.Millisecond) // both orders are right; this makes the other one likely
	adapter.Pull(t, a, "mlx5_0")
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a file of a pulled adapter can be read")
		}
	case <-time.After(soon):
		t.Error("a reader still waits for an adapter that was pulled")
	}
}

func TestAttachWithSilentFirmware(t *testing.T) {
	f := adapter.NewFabric(t)
	a := f.Begin(t, softhcaserver.Options{Node: "h1", Name: "mlx5_0"})
	a.Behave(softhcaserver.Behavior{Silent: true})
	ctx, cancel := context.WithTimeout(t.Context(), adapter.RegisterLimit)
	defer cancel()
	err := a.Registered(ctx)
	if err != nil && !errors.Is(err, syscall.ETIMEDOUT) {
		t.Errorf("the adapter was refused: %v, want ETIMEDOUT", err)
	}
}

func TestVirtualFunction(t *testing.T) {
	f := adapter.NewFabric(t)
	a := f.Begin(t, softhcaserver.Options{Node: "h1", Name: "mlx5_0", Flags: softhca.Function})
	adapter.Registered(t, a)
	f.Plug(t, "sm", "mlx5_1")
	adapter.OpenSM(t, "mlx5_1")
	if got := adapter.PortFile(t, "mlx5_0", 1, "state"); got != "4: ACTIVE" {
		t.Errorf("the port of the function is %q, want ACTIVE", got)
	}
	file := adapter.Umad(t, "mlx5_0", 1)
	if !guest.Exists(file) {
		t.Errorf("%s is missing: Linux shows one", file)
	}
	for _, args := range [][]string{{"-D", "nodeinfo", "0"}, {"-D", "nodeinfo", "0,1"}, {"nodeinfo", adapter.PortFile(t, "mlx5_1", 1, "lid")}} {
		if e := guest.Try(t, "smpquery", append([]string{"-C", "mlx5_0", "-t", "200"}, args...)...); e.Code == 0 {
			t.Errorf("smpquery %v through a virtual function: %s", args, e.All)
		}
	}
	if out := guest.Do(t, "perfquery", "-C", "mlx5_0", adapter.PortFile(t, "mlx5_1", 1, "lid"), "1"); !strings.Contains(out, "PortXmitPkts") {
		t.Errorf("GMPs of the function: %s", out)
	}
	issm := strings.Replace(file, "umad", "issm", 1)
	if fd, err := syscall.Open(issm, syscall.O_RDWR, 0); !errors.Is(err, syscall.EINVAL) {
		_ = syscall.Close(fd)
		t.Errorf("open %s: %v, want EINVAL", issm, err)
	}
}

func TestPlane(t *testing.T) {
	f := adapter.NewFabric(t)
	a := f.Begin(t, softhcaserver.Options{Node: "quad", Name: "smi1", Flags: softhca.Plane})
	adapter.Registered(t, a)
	f.Plug(t, "sm", "mlx5_0")
	adapter.OpenSM(t, "mlx5_0")
	if out := guest.Do(t, "smpquery", "-C", "smi1", "-P", "2", "-D", "nodeinfo", "0,2"); !strings.Contains(out, "Switch") {
		t.Errorf("SMPs of a plane: %s", out)
	}
	if c, err := verbs.Open("smi1"); !errors.Is(err, syscall.EOPNOTSUPP) {
		if err == nil {
			c.Close()
		}
		t.Errorf("a program opens a plane for data: %v, want EOPNOTSUPP", err)
	}
	if e := guest.Try(t, "perfquery", "-C", "smi1", "-P", "2", "-t", "200", adapter.PortFile(t, "mlx5_0", 1, "lid"), "1"); e.Code == 0 {
		t.Errorf("GMPs of a plane: %s", e.All)
	}
}

// read reads a file of the kernel, which may fail.
func read(name string) error {
	fd, err := syscall.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var b [64]byte
	_, err = syscall.Read(fd, b[:])
	return err
}
