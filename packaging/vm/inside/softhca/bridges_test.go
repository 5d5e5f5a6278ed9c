//go:build vm

package softhca_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/inside/guest"
)

// said is what a program wrote. It may be read while that runs.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// start starts a program that runs until stop is called, or the test ends.
func start(t *testing.T, name string, args ...string) (out *said, stop func()) {
	t.Helper()
	cmd := exec.Command(name, args...)
	out = &said{}
	cmd.Stdout, cmd.Stderr = out, out
	hold, err := cmd.StdinPipe() // whose end would end some
	check(t, err)
	check(t, cmd.Start())
	var once sync.Once
	stop = func() {
		once.Do(func() {
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
			_ = hold.Close()
			if t.Failed() {
				t.Logf("%s wrote:\n%s", name, out)
			}
		})
	}
	t.Cleanup(stop)
	return out, stop
}

func netlistFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fabric.net")
	check(t, os.WriteFile(file, []byte(adapter.Netlist), 0o600))
	return file
}

// activePort waits until a port is Active in the kernel's eyes.
func activePort(t *testing.T, name string) {
	t.Helper()
	state := filepath.Join(adapter.Sysfs(name), "ports/1/state")
	guest.Eventually(t, adapter.RegisterLimit, name+" is not Active", func() bool {
		text, err := os.ReadFile(state)
		return err == nil && strings.TrimSpace(string(text)) == "4: ACTIVE"
	})
}

func present(t *testing.T, name string) {
	t.Helper()
	guest.Eventually(t, adapter.RegisterLimit, "the kernel has no adapter "+name, func() bool {
		_, err := os.Stat(filepath.Join(adapter.Sysfs(name), "ports/1/state"))
		files, _ := filepath.Glob("/dev/infiniband/umad*")
		return err == nil && len(files) > 0
	})
}

func gone(t *testing.T, name string) {
	t.Helper()
	guest.Eventually(t, adapter.RegisterLimit, "the kernel still has adapter "+name, func() bool { return !guest.Exists(adapter.Sysfs(name)) })
}

// Debian's ibsim is the fabric, through the bridge.
func TestIbsimServes(t *testing.T) {
	adapter.Load(t)
	start(t, "ibsim", "-s", "-n", netlistFile(t))
	guest.Eventually(t, soon, "ibsim has no socket", func() bool { return strings.Contains(guest.Read(t, "/proc/net/unix"), "@sim:ctl") })
	_, stop := start(t, "bridge", "ibsim", "-node", "h1")
	present(t, "mlx5_0")
	adapter.OpenSM(t, "mlx5_0")
	activePort(t, "mlx5_0")
	if out := guest.Do(t, "ibnetdiscover", "-C", "mlx5_0"); !strings.Contains(out, `"S-0010000100000001"`) || !strings.Contains(out, "h2") {
		t.Errorf("ibnetdiscover:\n%s", out)
	}
	if out := guest.Do(t, "smpquery", "-C", "mlx5_0", "nodeinfo", adapter.PortFile(t, "mlx5_0", 1, "lid")); !strings.Contains(out, "Ca") {
		t.Errorf("smpquery:\n%s", out)
	}
	stop()
	gone(t, "mlx5_0")
}

// portcullis-sim as a process is the fabric; its console pulls the adapter and puts it back.
func TestSimulatorServes(t *testing.T) {
	adapter.Load(t)
	cmd := exec.Command("portcullis-sim", "run", netlistFile(t), "--adapter", "sm=/dev/softhca", "--adapter", "h1=/dev/softhca,name=mlx5_1")
	console, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	cmd.Stderr = t.Output()
	check(t, cmd.Start())
	defer func() {
		_, _ = io.WriteString(console, "quit\n")
		_ = cmd.Wait()
		gone(t, "mlx5_0")
	}()
	lines := bufio.NewScanner(out)
	next := func() string {
		if !lines.Scan() {
			t.Fatal("the simulator ended")
		}
		return lines.Text()
	}
	if line := next(); !strings.HasPrefix(line, "ready:") {
		t.Fatal(line)
	}
	command := func(text string) {
		if _, err := io.WriteString(console, text+"\n"); err != nil {
			t.Fatal(err)
		}
		if line := next(); line != "ok" {
			t.Errorf("%s: %s", text, line)
		}
	}
	present(t, "mlx5_0")
	present(t, "mlx5_1")
	adapter.OpenSM(t, "mlx5_0")
	activePort(t, "mlx5_1")
	command("pull h1")
	gone(t, "mlx5_1")
	command("plug h1")
	present(t, "mlx5_1")
	activePort(t, "mlx5_1") // what the manager set is in the fabric still
	command("unlink h1 1")
	guest.Eventually(t, soon, "a pulled cable is not seen", func() bool { return adapter.PortFile(t, "mlx5_1", 1, "state") == "1: DOWN" })
}

// OpenSM and portcullisd stay as managers, one after the other, and answer for subnet administration.
func TestSubnetManagersStay(t *testing.T) {
	f := adapter.NewFabric(t)
	f.Plug(t, "sm", "mlx5_0")
	f.Plug(t, "h1", "mlx5_1")
	for name, command := range map[string][]string{
		"OpenSM":      {"env", "OSM_CACHE_DIR=" + t.TempDir(), "OSM_TMP_DIR=" + t.TempDir(), "opensm", "-g", "0x0020000000000011", "-f", "/tmp/opensm.log"},
		"portcullisd": {"portcullisd", "sm", "--port", "umad:mlx5_0:1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stop := start(t, command[0], command[1:]...)
			activePort(t, "mlx5_1")
			guest.Eventually(t, adapter.RegisterLimit, "sminfo finds no manager", func() bool {
				e := guest.Try(t, "sminfo", "-C", "mlx5_1", "-t", "500")
				return e.Code == 0 && strings.Contains(e.Out, "SMINFO_MASTER")
			})
			guest.Eventually(t, adapter.RegisterLimit, "subnet administration does not answer", func() bool {
				e := guest.Try(t, "saquery", "-C", "mlx5_1", "-t", "500", "CPI")
				return e.Code == 0 && strings.Contains(e.Out, "ClassPortInfo")
			})
			if !strings.Contains(guest.Do(t, "ibstat", "mlx5_0"), "Active") {
				t.Error("ibstat does not say that the manager's port is Active")
			}
			stop()
			guest.Eventually(t, soon, "IsSM is set though the manager ended", func() bool {
				return !f.PortInfo("sm", 1).CapabilityMask.Has(1 << 1)
			})
			check(t, f.Reboot("h1")) // the next one begins with it
			if got := f.PortInfo("h1", 1).PortState; got == ib.PortActive {
				t.Errorf("the port is %v after a reboot", got)
			}
		})
	}
}

// The test that is for hardware passes.
func TestHardware(t *testing.T) {
	f := adapter.NewFabric(t)
	f.Plug(t, "sm", "mlx5_0")
	t.Log(guest.Do(t, "env", "PORTCULLIS_UMAD_PORT=umad:mlx5_0:1", "umad.test", "-test.v", "-test.run", "^TestHardware$"))
}

// TestRelay is for a machine whose lab has the fabric: it plugs a node in, pulls it once its port is Active, and
// puts it back.
func TestRelay(t *testing.T) {
	adapter.Load(t)
	guest.Do(t, "modprobe", "virtio_console")
	_, stop := start(t, "bridge", "relay", "adapter")
	present(t, "mlx5_0")
	adapter.OpenSM(t, "mlx5_0")
	activePort(t, "mlx5_0")
	fmt.Println("the port is active") // the lab waits for these lines
	gone(t, "mlx5_0")
	fmt.Println("the adapter is gone")
	present(t, "mlx5_0")
	activePort(t, "mlx5_0")
	stop()
	gone(t, "mlx5_0")
}
