//go:build vm

package selinux_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/softhcaserver"
	"portcullis/fabricsm/transport/softhca"
	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/inside/guest"
)

// The machine has two adapters on one switch. The Subnet Manager runs on the first.
const (
	first  = "mlx5_0"
	second = "mlx5_1"
)

var nodes = map[string]string{first: "sm", second: "h1"}

// Partitions of the tenants red and blue, as the port's tables hold them.
const (
	redPKey  = "0x8012"
	bluePKey = "0x8013"
)

const (
	tables    = "Default=0x7fff,ipoib : ALL=limited, SELF=full;\n"
	redTable  = "red=0x0012 : SELF=full, 0x0020000000000021=full;\n"
	blueTable = "blue=0x0013 : SELF=full, 0x0020000000000021=full;\n"

	tablesFile = "/root/partitions.conf"
	managerLog = "/root/sm.log"
)

// adapters are those that are plugged in.
var adapters = map[string]*softhcaserver.Adapter{}

// byKernel is the context where no program loads the driver, but a thread of the kernel finds the adapter.
const byKernel = ""

// plug plugs an adapter in. A program in the context loads its driver.
func plug(t testing.TB, device, context string) {
	t.Helper()
	o := softhcaserver.Options{Node: nodes[device], Name: device}
	open := func() (*softhca.Conn, error) { return softhca.Open(ctx, softhca.Device) }
	if context != byKernel {
		o.Flags = softhca.Caller
		open = func() (*softhca.Conn, error) { return openBy(t, context) }
	}
	conn, err := open()
	if err != nil {
		t.Fatal(err)
	}
	a, err := fabric.Plug(ctx, conn, o)
	if err != nil {
		t.Fatal(err)
	}
	adapters[device] = a
	if err := a.Registered(ctx); err != nil {
		t.Fatal(err)
	}
	guest.Eventually(t, limit, device+" has no device file", func() bool {
		return findMAD(device) != "" && guest.Exists(findMAD(device))
	})
}

// openBy returns a connection to an adapter's device by way of a program in a context.
func openBy(t testing.TB, context string) (*softhca.Conn, error) {
	t.Helper()
	device, err := os.OpenFile(softhca.Device, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer device.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "driver"), os.NewFile(uintptr(pair[1]), "fabric")
	defer theirs.Close()
	run(t, context, "drive", []*os.File{device, theirs})
	return softhca.NewConn(ours, "driver in "+context), nil
}

// unplug pulls an adapter, and waits until it is gone.
func unplug(t testing.TB, device string) {
	t.Helper()
	if adapters[device] == nil {
		t.Fatalf("%s is not plugged in", device)
	}
	adapters[device].Unplug()
	if err := adapters[device].Wait(); err != nil {
		t.Error(err)
	}
	guest.Eventually(t, limit, device+" does not go away", func() bool {
		return findMAD(device) == "" && !guest.Exists(port(device))
	})
}

func port(device string) string { return filepath.Join("/sys/class/infiniband", device, "ports/1") }

// findMAD returns the file by which programs send packets of management from an adapter; "" is none.
func findMAD(device string) string {
	found, _ := filepath.Glob("/sys/class/infiniband_mad/umad*")
	for _, dir := range found {
		if name, err := os.ReadFile(filepath.Join(dir, "ibdev")); err == nil && strings.TrimSpace(string(name)) == device {
			return filepath.Join("/dev/infiniband", filepath.Base(dir))
		}
	}
	return ""
}

func madFile(t testing.TB, device string) string {
	t.Helper()
	file := findMAD(device)
	if file == "" {
		t.Fatalf("%s has no file for packets of management", device)
	}
	return file
}

// active waits until the Subnet Manager has brought the adapter's port up, with the partitions of both tenants.
func active(t testing.TB, device string) {
	t.Helper()
	guest.Eventually(t, limit, device+" was not brought up", func() bool {
		state, err := os.ReadFile(filepath.Join(port(device), "state"))
		return err == nil && strings.Contains(string(state), "ACTIVE") && indexOf(device, redPKey) >= 0 && indexOf(device, bluePKey) >= 0
	})
}

// indexOf returns where in an adapter's table a P_Key is; -1: nowhere.
func indexOf(device, pkey string) int {
	for i := range 128 {
		text, err := os.ReadFile(filepath.Join(port(device), "pkeys", fmt.Sprint(i)))
		if err != nil {
			return -1
		}
		if strings.TrimSpace(string(text)) == pkey {
			return i
		}
	}
	return -1
}

// index returns the result of indexOf for a P_Key that must be there, as an argument of programs.
func index(t testing.TB, device, pkey string) string {
	t.Helper()
	i := indexOf(device, pkey)
	if i < 0 {
		t.Fatalf("%s is not in the table of %s", pkey, device)
	}
	return fmt.Sprint(i)
}

// lid returns the LID of an adapter's port.
func lid(t testing.TB, device string) string {
	t.Helper()
	return guest.Read(t, filepath.Join(port(device), "lid"))
}

// subnetManager is the one that runs.
var subnetManager *exec.Cmd

// startManager starts our Subnet Manager in its domain and waits until the fabric is settled.
func startManager(t testing.TB) {
	t.Helper()
	log, err := os.Create(managerLog)
	if err != nil {
		t.Fatal(err)
	}
	partitions(t, tables+redTable+blueTable)
	subnetManager = exec.Command("runcon", manager, "portcullisd", "sm", "--port", "umad:"+first, "--partitions", tablesFile, "--enforcement", "accepted")
	subnetManager.Stdout, subnetManager.Stderr = log, log
	if err := subnetManager.Start(); err != nil {
		t.Fatal(err)
	}
	for _, device := range []string{first, second} {
		active(t, device)
	}
}

// partitions has the Subnet Manager use other partitions.
func partitions(t testing.TB, text string) {
	t.Helper()
	if err := os.WriteFile(tablesFile, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if subnetManager != nil {
		if err := subnetManager.Process.Signal(unix.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
}

// explain logs, if the test fails, what the Subnet Manager wrote last, and the P_Keys of both adapters.
func explain(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		const last = 8192
		log, err := os.ReadFile(managerLog)
		t.Logf("the Subnet Manager's log (%v):\n%s", err, log[max(0, len(log)-last):])
		for _, device := range []string{first, second} {
			state, _ := os.ReadFile(filepath.Join(port(device), "state"))
			lid, _ := os.ReadFile(filepath.Join(port(device), "lid"))
			t.Logf("%s: state %q, LID %q, red at index %d, blue at index %d", device, state, lid, indexOf(device, redPKey), indexOf(device, bluePKey))
		}
	})
}

// managerRuns wants the Subnet Manager to be as it was.
func managerRuns(t testing.TB) {
	t.Helper()
	if err := subnetManager.Process.Signal(unix.Signal(0)); err != nil {
		log, _ := os.ReadFile(managerLog)
		t.Fatalf("the Subnet Manager ended: %v\n%s", err, log)
	}
}

// fabric is the simulated one, a switch with hosts.
var fabric *softhcaserver.Server

// ctx is that of the fabric, which lasts as long as the tests.
var ctx = context.Background()

// prepare loads the adapter's module and starts the fabric.
func prepare(t testing.TB) {
	t.Helper()
	adapter.Load(t)
	// Every denial must be visible, and not the first ten of five seconds alone.
	if err := os.WriteFile("/proc/sys/kernel/printk_ratelimit", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	list, err := netlist.Parse("netlist", []byte(adapter.Netlist))
	if err != nil {
		t.Fatal(err)
	}
	fabric = softhcaserver.New(sim.New(list))
}
