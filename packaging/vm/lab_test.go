//go:build vm

package vm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"portcullis/packaging/vm/disk"
	"portcullis/packaging/vm/kernel"
	"portcullis/packaging/vm/machine"
)

// cache returns the folder in which downloads and root file systems are kept from run to run. PORTCULLIS_VM_CACHE names another.
func cache(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("PORTCULLIS_VM_CACHE")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			base = "/var/cache"
		}
		dir = filepath.Join(base, "portcullis-vm")
	}
	must(t, os.MkdirAll(dir, 0o755))
	return dir
}

// filling is held while the cache is filled: labs run beside each other, and want the same.
var filling sync.Mutex

// cached returns what fill makes in the cache, or finds there.
func cached[T any](t testing.TB, fill func(cache string) (T, error)) T {
	t.Helper()
	filling.Lock()
	defer filling.Unlock()
	got, err := fill(cache(t))
	must(t, err)
	return got
}

// debian returns the kernel that the machines boot.
func debian(t testing.TB) kernel.Kernel {
	t.Helper()
	return cached(t, kernel.Debian)
}

// debianPackage returns a directory with the files of a package of Debian.
func debianPackage(t testing.TB, name string) string {
	t.Helper()
	return cached(t, func(cache string) (string, error) { return kernel.Package(cache, name) })
}

// initProgram is built once for all labs, so that all machines have the same initramfs.
var initProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "portcullis-vm-*")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "init")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "vm", "-ldflags=-s -w", "-o", file, "./inside/init")
	cmd.Env = static()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", &exec.Error{Name: "go build: " + string(out), Err: err}
	}
	return file, nil
})

// initramfs returns the initramfs that all machines boot.
func initramfs(t testing.TB) string {
	t.Helper()
	file, err := initProgram()
	must(t, err)
	out := filepath.Join(t.TempDir(), "initramfs")
	must(t, disk.Initramfs(out, debian(t), file))
	return out
}

// suite is a test program of inside/ and its tests.
type suite struct {
	file  string
	tests []string
}

// newSuite builds the test program of a package below inside/. Tags are added to the tag vm.
func newSuite(t testing.TB, pkg string, tags ...string) suite {
	t.Helper()
	s := suite{file: filepath.Join(t.TempDir(), "test")}
	command(t, "go", "test", "-c", "-vet=off", "-trimpath", "-ldflags=-s -w", "-tags", strings.Join(append(tags, "vm"), ","), "-o", s.file, pkg)
	for line := range strings.Lines(command(t, s.file, "-test.list", ".*")) {
		if name := strings.TrimSpace(line); strings.HasPrefix(name, "Test") {
			s.tests = append(s.tests, name)
		}
	}
	return s
}

// seed returns a seed that runs the tests which the expression selects, and the names of these. On a machine that has
// a root file system, a unit runs them once the system is up.
func (s suite) seed(t testing.TB, expression string) (*disk.Seed, []string) {
	t.Helper()
	seed := &disk.Seed{}
	must(t, seed.File(disk.SuiteFile, s.file))
	file, err := initProgram()
	must(t, err)
	must(t, seed.File(disk.InitFile, file))
	seed.Arguments("-test.v", "-test.timeout=13m", "-test.run="+expression)
	return seed, machine.Matching(s.tests, expression)
}

// seedDrive writes a seed as a drive.
func seedDrive(t testing.TB, seed *disk.Seed) machine.Drive {
	t.Helper()
	file := filepath.Join(t.TempDir(), "seed")
	must(t, seed.Write(file))
	return machine.Drive{File: file, Serial: disk.SeedSerial, ReadOnly: true}
}

// rootDrive returns a drive of one machine's own that begins as the root file system with our packages.
func rootDrive(t testing.TB) machine.Drive {
	t.Helper()
	r := systemRoot(t)
	file := filepath.Join(t.TempDir(), "root.qcow2")
	must(t, disk.Overlay(file, r.Image))
	return machine.Drive{File: file, Format: "qcow2", Serial: disk.RootSerial}
}

// debs returns our packages for this machine's architecture.
func debs(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("../../dist/*_amd64.deb")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("no packages are in dist: run \"make package\"")
	}
	return files
}

// static returns an environment in which Go links programs that need no library: machines without root file system have none.
func static() []string { return append(os.Environ(), "CGO_ENABLED=0") }

func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = static()
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, said.String())
	}
	return string(out)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
