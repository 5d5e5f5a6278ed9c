//go:build vm

package vm

import (
	"testing"

	"portcullis/packaging/vm/machine"
)

// TestTPM tries the ways to open a TPM, and a TPM that falls silent, on the kernel's
// drivers. They are the same without firmware that measures, which takes most of the time of a boot.
func TestTPM(t *testing.T) {
	lab(t, 20)
	s := newSuite(t, "./inside/tpm")
	seed, tests := s.seed(t, "^Test")
	must(t, seed.Busybox())
	must(t, seed.Modules(debian(t), "tpm_vtpm_proxy"))
	machine.Run(t, machine.Spec{
		Name: "tpm", TPM: machine.NewTPM(t), Kernel: debian(t).Image(), Initrd: initramfs(t),
		Drives: []machine.Drive{seedDrive(t, seed)},
	}, tests)
}
