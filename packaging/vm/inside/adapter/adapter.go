//go:build vm

// Package adapter has what test programs in the virtual machines do with the InfiniBand
// adapter softhca: loading the module, plugging nodes of a fabric in, and reading what the
// kernel shows of them.
package adapter

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/softhcaserver"
	"portcullis/fabricsm/transport/softhca"
	"portcullis/packaging/vm/inside/guest"
)

// Module is where the lab puts the module softhca.
const Module = "/lib/modules/softhca.ko"

// Load loads softhca and the modules by which programs use adapters.
func Load(t testing.TB) {
	t.Helper()
	for _, name := range []string{"ib_umad", "ib_uverbs"} {
		if !guest.Exists("/sys/module/" + name) {
			guest.Do(t, "modprobe", name)
		}
	}
	if guest.Exists("/sys/module/softhca") {
		return
	}
	f, err := os.Open(Module)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil {
		t.Fatalf("load %s: %v", Module, err)
	}
}

// Netlist is the fabric of most tests: hosts with one port, and quad with four.
const Netlist = `switchguid=0x0010000100000001
Switch 16 "leaf"
[1]	"sm"[1]	# "sm" lid 0 4xEDR
[2]	"h1"[1]	# "h1" lid 0 4xEDR
[3]	"h2"[1]	# "h2" lid 0 4xEDR
[4]	"quad"[1]	# "quad" lid 0 4xEDR
[5]	"quad"[2]	# "quad" lid 0 4xEDR
[6]	"quad"[3]	# "quad" lid 0 4xEDR
[7]	"quad"[4]	# "quad" lid 0 4xEDR

caguid=0x0020000000000010
Ca 1 "sm"
[1]	"leaf"[1]	# lid 0 lmc 0 "leaf" lid 0 4xEDR

caguid=0x0020000000000020
Ca 1 "h1"
[1]	"leaf"[2]	# lid 0 lmc 0 "leaf" lid 0 4xEDR

caguid=0x0020000000000030
Ca 1 "h2"
[1]	"leaf"[3]	# lid 0 lmc 0 "leaf" lid 0 4xEDR

caguid=0x0020000000000040
Ca 4 "quad"
[1]	"leaf"[4]	# lid 0 lmc 0 "leaf" lid 0 4xEDR
[2]	"leaf"[5]	# lid 0 lmc 0 "leaf" lid 0 4xEDR
[3]	"leaf"[6]	# lid 0 lmc 0 "leaf" lid 0 4xEDR
[4]	"leaf"[7]	# lid 0 lmc 0 "leaf" lid 0 4xEDR
`

// Fabric is a simulated fabric in this process, whose nodes can be plugged in.
type Fabric struct {
	*sim.Fabric
	server *softhcaserver.Server
}

// NewFabric makes the fabric of Netlist.
func NewFabric(t testing.TB) Fabric {
	t.Helper()
	Load(t)
	l, err := netlist.Parse("netlist", []byte(Netlist))
	if err != nil {
		t.Fatal(err)
	}
	f := sim.New(l)
	return Fabric{Fabric: f, server: softhcaserver.New(f)}
}

// RegisterLimit is how long the kernel may take to register an adapter.
const RegisterLimit = 30 * time.Second

// Plug plugs a node in under a name and waits until the kernel has it. It is pulled with the end of the test at the latest.
func (f Fabric) Plug(t testing.TB, node, name string) *softhcaserver.Adapter {
	t.Helper()
	a := f.Begin(t, softhcaserver.Options{Node: node, Name: name})
	Registered(t, a)
	return a
}

// Begin is Plug that does not wait.
func (f Fabric) Begin(t testing.TB, o softhcaserver.Options) *softhcaserver.Adapter {
	t.Helper()
	conn, err := softhca.Open(t.Context(), softhca.Device)
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.server.Plug(context.WithoutCancel(t.Context()), conn, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Pull(t, a, o.Name) })
	return a
}

// Registered waits until the kernel has an adapter.
func Registered(t testing.TB, a *softhcaserver.Adapter) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), RegisterLimit)
	defer cancel()
	if err := a.Registered(ctx); err != nil {
		t.Fatal(err)
	}
}

// Pull pulls an adapter and waits until the kernel has forgotten it.
func Pull(t testing.TB, a *softhcaserver.Adapter, name string) {
	t.Helper()
	a.Unplug()
	guest.Eventually(t, RegisterLimit, "adapter "+name+" is still there after it was pulled", func() bool { return !guest.Exists(Sysfs(name)) })
}

// Sysfs is where the kernel shows an adapter.
func Sysfs(name string) string { return filepath.Join("/sys/class/infiniband", name) }

// PortFile reads a file of the kernel about a port.
func PortFile(t testing.TB, name string, port int, file string) string {
	t.Helper()
	return guest.Read(t, filepath.Join(Sysfs(name), "ports", strconv.Itoa(port), file))
}

// Counter reads one of the module's counters of a port.
func Counter(t testing.TB, name string, port int, counter string) uint64 {
	t.Helper()
	text := PortFile(t, name, port, "hw_counters/"+counter)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Umad returns the file by which programs manage through a port, such as /dev/infiniband/umad0.
func Umad(t testing.TB, name string, port int) string {
	t.Helper()
	dirs, err := filepath.Glob("/sys/class/infiniband_mad/umad*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		device, err := os.ReadFile(filepath.Join(dir, "ibdev"))
		number, err2 := os.ReadFile(filepath.Join(dir, "port"))
		if err == nil && err2 == nil && strings.TrimSpace(string(device)) == name && strings.TrimSpace(string(number)) == strconv.Itoa(port) {
			return filepath.Join("/dev/infiniband", filepath.Base(dir))
		}
	}
	t.Fatalf("no umad file is of port %d of %s", port, name)
	return ""
}

// OpenSM lets OpenSM bring the fabric up through an adapter's port, once, and returns its log. How OpenSM ends is not judged: at
// times it crashes or waits without end after its log says that it exits.
func OpenSM(t testing.TB, name string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "opensm.log")
	guid := strings.ReplaceAll(strings.TrimPrefix(PortFile(t, name, 1, "gids/0")[20:], ":"), ":", "")
	all := append([]string{"OSM_CACHE_DIR=" + dir, "OSM_TMP_DIR=" + dir, "opensm", "-o", "-g", "0x" + guid, "-f", log, "-s", "0"}, args...)
	ended := guest.Try(t, "env", all...)
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "SUBNET UP") {
		t.Fatalf("OpenSM did not bring the fabric up: %+v\n%s", ended, text)
	}
	return string(text)
}
