//go:build vm

package umad_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/packaging/vm/inside/guest"
)

// Nodes that these tests name. The fabric is a tree of four leaves with three hosts each and two spines.
const (
	ourNode = "sm" // behind port 1 of leaf1
	tester  = "h1" // the other machine, behind port 2 of leaf1
	distant = "h4" // behind another leaf

	another = "h2" // a third machine, behind port 3 of leaf1

	ours   = "mlx5_0" // the adapter of ourNode
	theirs = "mlx5_1" // the adapter of tester
	third  = "mlx5_2" // the adapter of another
)

// fabric is a simulator and the adapters of this machine that are cabled to its nodes.
type fabric struct {
	*daemon
	input io.Writer
}

// adapters are the names that nodes get as adapters of this machine.
var adapters = map[string]string{ourNode: ours, tester: theirs, another: third}

// newFabric starts our simulator with the fabric of these tests, and plugs nodes into this machine.
func newFabric(t testing.TB, nodes ...string) *fabric {
	t.Helper()
	return newFabricWith(t, netlist(t), nil, nodes...)
}

func newFabricWith(t testing.TB, file string, args []string, nodes ...string) *fabric {
	t.Helper()
	args = append([]string{"run", file, "--socket", "ours"}, args...)
	for _, node := range nodes {
		args = append(args, "--adapter", node+"=/dev/softhca,name="+adapters[node])
	}
	t.Cleanup(func() { // after the simulator ended
		for _, node := range nodes {
			guest.Eventually(t, patience, adapters[node]+" is still there", func() bool { return !guest.Exists("/sys/class/infiniband/" + adapters[node]) })
		}
	})
	f := &fabric{}
	f.run(t, exec.Command("portcullis-sim", args...))
	f.says(0, "ready: ")
	for _, node := range nodes {
		f.there(node)
	}
	return f
}

func (f *fabric) run(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	cmd.Stdin, f.input = in, out
	f.daemon = start(t, cmd)
	_ = in.Close()
}

// netlist writes the fabric of these tests in ibsim's format.
func netlist(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fabric.net")
	text := guest.Do(t, "portcullis-sim", "generate", "ft2", "--hosts", "12", "--leaves", "4", "--spines", "2", "--radix", "8")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// do gives commands to the simulator, each of which must be accepted.
func (f *fabric) do(commands ...string) {
	f.t.Helper()
	for _, c := range commands {
		from := f.now()
		f.write(c + "\n")
		if got := f.until(from, "an answer", func(out string) bool { return strings.HasSuffix(out, "\n") }); got != "ok\n" {
			f.t.Fatalf("simulator: %s: %s", c, got)
		}
	}
}

func (f *fabric) write(text string) {
	f.t.Helper()
	if _, err := io.WriteString(f.input, text); err != nil {
		f.t.Fatal(err)
	}
}

// there waits until programs can use an adapter.
func (f *fabric) there(node string) {
	f.t.Helper()
	guest.Eventually(f.t, patience, adapters[node]+" has no umad device", func() bool { return deviceFile("umad", adapters[node]) != "" })
}

// pull takes an adapter out of this machine.
func (f *fabric) pull(node string) {
	f.t.Helper()
	f.do("pull " + node)
	guest.Eventually(f.t, patience, adapters[node]+" is still there", func() bool { return !guest.Exists("/sys/class/infiniband/" + adapters[node]) })
}

// deviceFile returns the path of a device file of ib_umad.
func deviceFile(kind, device string) string {
	files, _ := filepath.Glob("/sys/class/infiniband_mad/" + kind + "*/ibdev")
	for _, name := range files {
		text, err := os.ReadFile(name)
		dev := "/dev/infiniband/" + filepath.Base(filepath.Dir(name))
		if err == nil && strings.TrimSpace(string(text)) == device && guest.Exists(dev) {
			return dev
		}
	}
	return ""
}

// port reads what the kernel knows of a port: a file below /sys/class/infiniband/DEVICE/ports/1.
func port(t testing.TB, device, file string) string {
	t.Helper()
	return guest.Read(t, filepath.Join("/sys/class/infiniband", device, "ports/1", file))
}
