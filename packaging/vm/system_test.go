//go:build vm

package vm

import (
	"testing"

	"portcullis/packaging/vm/machine"
)

// TestSystem boots the machines that the other labs use and finds in them what these need. TestBoots does so for those with UEFI
// firmware.
func TestSystem(t *testing.T) {
	lab(t, 50)
	s := newSuite(t, "./inside/system")
	t.Run("Initramfs", func(t *testing.T) {
		seed, tests := s.seed(t, "^TestKernel$")
		machine.Run(t, machine.Spec{
			Name: "initramfs", Kernel: debian(t).Image(), Initrd: initramfs(t), Drives: []machine.Drive{seedDrive(t, seed)},
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
