//go:build vm

package vm

import (
	"testing"
	"time"

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
	for _, name := range []string{"portcullisd", "portcullis", "portcullis-sim"} {
		must(t, seed.File("/usr/bin/"+name, program(t, name)))
	}
	must(t, seed.File("/usr/bin/bridge", bridge(t)))
	for _, name := range fabricTools {
		must(t, seed.Program(name))
	}
	// Threads of OpenSM end by pthread_cancel, which loads this library while it runs.
	const library = "/lib/x86_64-linux-gnu/libgcc_s.so.1"
	must(t, seed.ProgramAs(library, library))
	must(t, seed.File("/suite/hardware", hardwareTest(t)))
	machine.Run(t, machine.Spec{
		Name: "umad", Limit: 10 * time.Minute, Kernel: k.Image(), Initrd: initramfs(t), Drives: []machine.Drive{seedDrive(t, seed)},
	}, tests)
}
