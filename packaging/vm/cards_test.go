//go:build vm

package vm

import (
	"path/filepath"
	"testing"

	"portcullis/packaging/vm/disk"
	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/machine"
)

// TestCards has the vendor's tools, unmodified, and the agent drive simulated cards behind PCI functions of a
// real kernel. The machine has the tools of its own release of Debian, and those of the development release: the older
// ones know neither the SMP firewall nor locks.
func TestCards(t *testing.T) {
	lab(t, 80)
	s := newSuite(t, "./inside/cards")
	seed, tests := s.seed(t, "^Test")
	module, err := debian(t).BuildModule("softpci", filepath.Join(t.TempDir(), "softpci"), "softpci")
	must(t, err)
	must(t, seed.File("/suite/softpci.ko", module))
	must(t, seed.File(adapter.Module, adapterModule(t)))
	newest := cached(t, func(cache string) (string, error) { return disk.Unpacked(cache, "sid", "mstflint") })
	must(t, seed.Chroot("/newest", newest, []string{"/usr/bin/mstflint", "/usr/bin/mstconfig", "/usr/bin/mstreg"},
		[]string{"/usr/share/mstflint/mlxconfig_dbs", "/usr/share/mstflint/prm_dbs/hca"}))
	for _, name := range []string{"tenant-lock.rsa2048.bin", "tenant-lock.digest.bin"} {
		must(t, seed.File("/suite/"+name, filepath.Join("../../firmware/nvconfig/testdata", name)))
	}
	machine.Run(t, machine.Spec{
		Name: "cards", Kernel: debian(t).Image(), Initrd: initramfs(t), Memory: 2048,
		Drives: []machine.Drive{rootDrive(t), seedDrive(t, seed)},
	}, tests)
}
