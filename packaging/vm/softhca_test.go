//go:build vm

package vm

import (
	"cmp"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"portcullis/packaging/vm/disk"
	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/machine"
)

// adapterModule builds the module softhca, once for all labs.
func adapterModule(t testing.TB) string {
	t.Helper()
	k := debian(t)
	buildAdapter.Do(func() {
		var dir string
		if dir, buildAdapter.err = os.MkdirTemp("", "portcullis-vm-*"); buildAdapter.err == nil {
			buildAdapter.file, buildAdapter.err = k.BuildModule("softhca", filepath.Join(dir, "softhca"), "softhca")
		}
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

// TestSofthca tries the adapter without hardware under Linux's InfiniBand stack.
func TestSofthca(t *testing.T) {
	s := newSuite(t, "./inside/softhca")
	seed, tests := s.seed(t, cmp.Or(os.Getenv("SOFTHCA_RUN"), "^Test"))
	must(t, seed.Busybox())
	seedAdapter(t, seed)
	for _, name := range []string{"opensm", "ibstat", "ibnetdiscover", "iblinkinfo", "smpquery", "perfquery", "saquery", "sminfo"} {
		must(t, seed.Program(name))
	}
	const gcc = "/lib/x86_64-linux-gnu/libgcc_s.so.1"
	must(t, seed.File(gcc, gcc)) // which OpenSM loads when its threads end
	machine.Run(t, machine.Spec{
		Name: "softhca", Kernel: debian(t).Image(), Initrd: initramfs(t), Drives: []machine.Drive{seedDrive(t, seed)},
	}, tests)
}
