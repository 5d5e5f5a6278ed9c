//go:build vm

package vm

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"portcullis/packaging/vm/disk"
	"portcullis/packaging/vm/inside/adapter"
	"portcullis/packaging/vm/machine"
)

// TestService has the packages of the service go through their life on a machine with systemd: deb and rpm, of an earlier
// version, of this one, and of one that is older than the state.
func TestService(t *testing.T) {
	lab(t, 280)
	s := newSuite(t, "./inside/service")
	seed, tests := s.seed(t, ".")
	seed.Arguments("-test.v", "-test.timeout=13m") // more than a minute of it are waits for systemd
	for to, from := range servicePackages(t) {
		must(t, seed.File(filepath.Join("/lab", to), from))
	}
	fabricOfService(t, seed)
	machine.Run(t, machine.Spec{
		Name: "service", Kernel: debian(t).Image(), Initrd: initramfs(t), Memory: 2048, Limit: 14 * time.Minute,
		Drives: []machine.Drive{rootDrive(t), seedDrive(t, seed)},
	}, tests)
}

// beforeFormat is the last commit whose service records no format of its state. "git archive" needs it: a shallow clone has not.
const (
	beforeFormat        = "df64d53"
	beforeFormatVersion = "0.0.0+802.gdf64d53"
)

// servicePackages returns the packages that the test program installs, by name in the machine.
func servicePackages(t *testing.T) map[string]string {
	t.Helper()
	lower := filepath.Join(t.TempDir(), "lower")
	command(t, "../package.sh", "0.0.0+1.g0000000", "portcullisd", lower)
	return map[string]string{
		"before.deb": before(t),
		"lower.deb":  one(t, lower, "portcullisd_*_amd64.deb"),
		"lower.rpm":  one(t, lower, "portcullisd-*.rpm"),
		"now.deb":    one(t, "../../dist", "portcullisd_*_amd64.deb"),
		"now.rpm":    one(t, "../../dist", "portcullisd-0*.x86_64.rpm"),
	}
}

// before returns the package of beforeFormat, which is made once and kept in the cache.
func before(t *testing.T) string {
	t.Helper()
	kept := filepath.Join(cache(t), "portcullisd_"+beforeFormatVersion+".deb")
	if _, err := os.Stat(kept); err == nil {
		return kept
	}
	source, made := t.TempDir(), filepath.Join(t.TempDir(), "made")
	archive := exec.Command("sh", "-c", fmt.Sprintf("git -C \"$(git rev-parse --show-toplevel)\" archive %s | tar x -C %s", beforeFormat, source))
	if out, err := archive.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("source of %s: %v: %s: the whole history of the repository is needed: run \"git fetch --unshallow\"", beforeFormat, err, out)
	}
	command(t, "go", "-C", source, "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -X portcullis/cmd/internal/version.tag="+beforeFormatVersion, "-o", "bin/", "./cmd/portcullisd")
	script, err := os.ReadFile("../package.sh") // that of then makes all packages
	must(t, err)
	must(t, os.WriteFile(filepath.Join(source, "packaging/package.sh"), script, 0o755))
	command(t, filepath.Join(source, "packaging/package.sh"), beforeFormatVersion, "portcullisd", made)
	must(t, os.Rename(one(t, made, "*.deb"), kept+".part"))
	must(t, os.Rename(kept+".part", kept))
	return kept
}

// one returns the only file of a directory that the pattern matches.
func one(t *testing.T, dir, pattern string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	must(t, err)
	if len(files) != 1 {
		t.Fatalf("%d files of %s match %s, want 1: run \"make package\"", len(files), dir, pattern)
	}
	return files[0]
}

// fabricUnit simulates a fabric, one node of which is the machine's adapter. Commands for the simulator go into a pipe.
const fabricUnit = `[Unit]
Description=simulated fabric with this machine's adapter
Before=portcullisd.service

[Service]
ExecStartPre=modprobe -a ib_umad ib_uverbs
ExecStartPre=insmod %[1]s
ExecStartPre=mkfifo /run/fabric
ExecStart=sh -c 'exec portcullis-sim run /lab/fabric.net --adapter sm=/dev/softhca,name=mlx5_0 <>/run/fabric'
`

// fabricOfService has systemd start a simulated fabric, and an adapter of the machine in it.
func fabricOfService(t *testing.T, seed *disk.Seed) {
	t.Helper()
	must(t, seed.File(adapter.Module, adapterModule(t)))
	seed.Data("/lab/fabric.net", command(t, "../../bin/portcullis-sim", "generate", "ft2", "--hosts", "6", "--hcas", "1", "--leaves", "2", "--spines", "2"), 0o644)
	seed.Data("/etc/systemd/system/fabric.service", fmt.Sprintf(fabricUnit, adapter.Module), 0o644)
	seed.Link("/etc/systemd/system/multi-user.target.wants/fabric.service", "../fabric.service")
}
