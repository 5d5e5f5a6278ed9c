//go:build vm

package vm

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/softhcaserver"
	"portcullis/fabricsm/transport/softhca"
	"portcullis/packaging/vm/disk"
	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/kernel"
	"portcullis/packaging/vm/machine"
)

// adapterModule builds the module softhca, once for all labs.
func adapterModule(t testing.TB) string {
	t.Helper()
	k := debian(t)
	buildAdapter.Do(func() {
		dir, err := os.MkdirTemp("", "portcullis-vm-*") //nolint:usetesting // it is for all tests
		if err != nil {
			buildAdapter.err = err
			return
		}
		buildAdapter.file, buildAdapter.err = k.BuildModule("softhca", filepath.Join(dir, "softhca"), "softhca")
	})
	must(t, buildAdapter.err)
	return buildAdapter.file
}

var buildAdapter struct {
	sync.Once
	file string
	err  error
}

// seedAdapter adds the module softhca and those by which programs use adapters to a seed.
func seedAdapter(t testing.TB, s *disk.Seed) {
	t.Helper()
	must(t, s.File(adapter.Module, adapterModule(t)))
	must(t, s.Modules(debian(t), "ib_umad", "ib_uverbs"))
}

// softhcaSeed returns a seed with the tests that the expression selects, the adapter, and the programs that manage fabrics.
func softhcaSeed(t *testing.T, expression string) (*disk.Seed, []string) {
	t.Helper()
	s := newSuite(t, "./inside/softhca")
	seed, tests := s.seed(t, expression)
	must(t, seed.Busybox())
	seedAdapter(t, seed)
	for _, name := range []string{
		"opensm", "ibsim", "ibstat", "ibnetdiscover", "iblinkinfo", "smpquery", "perfquery", "saquery", "sminfo",
	} {
		must(t, seed.Program(name))
	}
	const gcc = "/lib/x86_64-linux-gnu/libgcc_s.so.1"
	must(t, seed.File(gcc, gcc)) // which OpenSM loads when its threads end
	must(t, seed.File("/bin/bridge", bridge(t)))
	must(t, seed.File("/bin/portcullis-sim", program(t, "portcullis-sim")))
	must(t, seed.File("/bin/portcullisd", program(t, "portcullisd")))
	must(t, seed.File("/bin/umad.test", hardwareTest(t)))
	return seed, tests
}

// bridge builds the program that joins an adapter to its fabric.
func bridge(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bridge")
	command(t, "go", "build", "-trimpath", "-buildvcs=false", "-tags", "vm", "-ldflags=-s -w", "-o", file, "./inside/bridge")
	return file
}

// hardwareTest builds the test program of the driver of ib_umad that needs an adapter.
func hardwareTest(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "hardware")
	command(t, "go", "test", "-c", "-vet=off", "-trimpath", "-ldflags=-s -w", "-tags", "hardware", "-o", file, "../../fabricsm/transport/umad")
	return file
}

// TestSofthca tries the adapter without hardware under Linux's InfiniBand stack, with its fabric in the same machine.
func TestSofthca(t *testing.T) {
	lab(t, 60)
	const here = "^Test([^RL]|R[^e])" // not TestRelay, not TestLeaks
	if os.Getenv(kernel.Override) == "" {
		seed, tests := softhcaSeed(t, here)
		machine.Run(t, machine.Spec{
			Name: "softhca", Kernel: debian(t).Image(), Initrd: initramfs(t), Drives: []machine.Drive{seedDrive(t, seed)},
		}, tests)
		return
	}
	// A kernel that looks for defects is several times slower, and is asked for leaks at the end.
	seed, tests := softhcaSeed(t, here+"|^TestLeaks$")
	seed.Arguments("-test.v", "-test.timeout=30m", "-test.run="+here+"|^TestLeaks$")
	machine.Run(t, machine.Spec{
		Name: "softhca", Kernel: debian(t).Image(), Initrd: initramfs(t), Drives: []machine.Drive{seedDrive(t, seed)}, Memory: 2048,
		Limit: 35 * time.Minute, BootLimit: 5 * time.Minute,
	}, tests)
}

// TestSofthcaRelay has the fabric outside of the machine, and pulls the adapter.
func TestSofthcaRelay(t *testing.T) {
	lab(t, 40)
	seed, tests := softhcaSeed(t, "^TestRelay$")
	must(t, seed.Modules(debian(t), "virtio_console"))
	dir, err := os.MkdirTemp("", "portcullis-vm-*") //nolint:usetesting // the path of t.TempDir is too long for a socket
	must(t, err)
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "adapter")
	l, err := netlist.Parse("netlist", []byte(adapter.Netlist))
	must(t, err)
	f := sim.New(l)
	server := softhcaserver.New(f)
	m := machine.Start(t, machine.Spec{
		Name: "relay", Kernel: debian(t).Image(), Initrd: initramfs(t), Drives: []machine.Drive{seedDrive(t, seed)},
		Channels: map[string]string{"adapter": socket},
	})
	must(t, m.Until(machine.MarkBegin, 100*time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	defer func() {
		if t.Failed() {
			t.Logf("the machine wrote:\n%s", m.ProtocolText())
		}
	}()
	for round := range 2 {
		conn, err := softhca.Open(ctx, "unix:"+socket)
		must(t, err)
		a, err := server.Plug(ctx, conn, softhcaserver.Options{Node: "h1"})
		must(t, err)
		err = a.Registered(ctx)
		select {
		case <-a.Done():
			if round > 0 { // the machine may have ended before its last messages left it; its report says what it saw
				err = nil
			}
		default:
		}
		must(t, err)
		for ended := false; !ended && f.PortInfo("h1", 1).PortState != ib.PortActive; {
			select {
			case <-a.Done():
				if ended = round > 0; !ended { // the machine ends as soon as it has seen the port Active again
					t.Fatal(a.Wait())
				}
			case <-ctx.Done():
				t.Fatal("the port did not become Active")
			case <-time.After(50 * time.Millisecond):
			}
		}
		if round == 0 {
			// Not before OpenSM has ended there: it would wait for answers.
			must(t, m.Until("the port is active", 60*time.Second))
			a.Unplug()
			// A virtio-serial port reports the end of a stream to the machine only while the port has not been opened
			// again.
			must(t, m.Until("the adapter is gone", 30*time.Second))
		}
	}
	m.Report(t, tests)
}
