//go:build vm

package vm

import (
	"testing"

	"portcullis/packaging/vm/machine"
)

// TestSystem boots the machines that the other labs use and finds in them what these need.
func TestSystem(t *testing.T) {
	t.Parallel()
	s := newSuite(t, "./inside/system")
	t.Run("Initramfs", func(t *testing.T) {
		seed, tests := s.seed(t, "^TestKernel$")
		machine.Run(t, machine.Spec{
			Name: "initramfs", Kernel: debian(t).Image(), Initrd: initramfs(t), Drives: []machine.Drive{seedDrive(t, seed)},
		}, tests)
	})
	t.Run("UEFI", func(t *testing.T) {
		seed, tests := s.seed(t, "^Test(Kernel|MeasuredBoot)$")
		machine.Run(t, machine.Spec{
			Name: "uefi", Firmware: machine.UEFI, TPM: machine.NewTPM(t), Kernel: debian(t).Image(), Initrd: initramfs(t),
			Drives: []machine.Drive{seedDrive(t, seed)},
		}, tests)
	})
	t.Run("Systemd", func(t *testing.T) {
		seed, tests := s.seed(t, "^Test(Kernel|Systemd)$")
		machine.Run(t, machine.Spec{
			Name: "systemd", Kernel: debian(t).Image(), Initrd: initramfs(t), Memory: 2048,
			Drives: []machine.Drive{rootDrive(t), seedDrive(t, seed)},
		}, tests)
	})
}
