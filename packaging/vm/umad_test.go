//go:build vm

package vm

import (
	"path/filepath"
	"testing"
	"time"

	"portcullis/packaging/vm/disk"
	"portcullis/packaging/vm/machine"
)

// fabricTools are Debian's programs that judge the fabric, unchanged: those of infiniband-diags, the other Subnet Manager
// and the other simulator.
var fabricTools = []string{
	"ibaddr", "iblinkinfo", "ibnetdiscover", "ibping", "ibportstate", "ibstat", "ibtracert", "perfquery", "saquery", "sminfo", "smpquery",
	"opensm", "ibsim",
}

// TestUMAD runs on Linux's ib_umad what docs/reference/hardware-test-plan.md wants and needs no silicon, in one machine.
func TestUMAD(t *testing.T) {
	lab(t, 200)
	k := debian(t)
	s := newSuite(t, "./inside/umad")
	seed, tests := s.seed(t, "^Test")
	must(t, seed.Busybox())
	seedAdapter(t, seed)
	addPrograms(t, seed, "cmd/portcullisd", "cmd/portcullis", "cmd/portcullis-sim", "packaging/vm/inside/bridge")
	for _, name := range fabricTools {
		must(t, seed.Program(name))
	}
	// Threads of OpenSM end by pthread_cancel, which loads this library while it runs.
	const library = "/lib/x86_64-linux-gnu/libgcc_s.so.1"
	must(t, seed.ProgramAs(library, library))
	hardware := filepath.Join(t.TempDir(), "hardware")
	command(t, "go", "test", "-c", "-trimpath", "-tags", "hardware", "-o", hardware, "portcullis/fabricsm/transport/umad")
	must(t, seed.File("/suite/hardware", hardware))
	machine.Run(t, machine.Spec{
		Name: "umad", Limit: 10 * time.Minute, Kernel: k.Image(), Initrd: initramfs(t), Drives: []machine.Drive{seedDrive(t, seed)},
	}, tests)
}

// addPrograms builds programs of ours and adds them, for a machine without root file system.
func addPrograms(t testing.TB, seed *disk.Seed, packages ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, pkg := range packages {
		name := filepath.Base(pkg)
		file := filepath.Join(dir, name)
		command(t, "go", "build", "-trimpath", "-tags", "vm", "-o", file, "portcullis/"+pkg)
		must(t, seed.File("/usr/bin/"+name, file))
	}
}
