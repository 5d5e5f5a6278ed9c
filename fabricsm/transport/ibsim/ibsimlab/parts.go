package ibsimlab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// MissingError means that a third-party program or library is not installed.
type MissingError struct {
	Part    string // program or file looked for
	Package string // Debian package that has it
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is not installed: it comes with the Debian package %s", e.Part, e.Package)
}

// preloadPaths are the places where distributions put the umad2sim library:
// Debian first, then the fallback of builds without a multi-arch directory.
var preloadPaths = [...]string{
	"/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so",
	"/usr/lib/aarch64-linux-gnu/umad2sim/libumad2sim.so",
	"/usr/lib64/umad2sim/libumad2sim.so",
	"/usr/lib/umad2sim/libumad2sim.so",
}

// debianPackages maps programs to their packages; the other programs of a lab are in infiniband-diags.
var debianPackages = map[string]string{
	"ibsim":   "ibsim-utils",
	"opensm":  "opensm",
	"osmtest": "opensm",
}

// Find returns the path of a third-party program. It looks in PATH and in the system directories that an ordinary user's
// PATH leaves out. The error is a *MissingError.
func Find(program string) (string, error) {
	if p, err := exec.LookPath(program); err == nil {
		return filepath.Abs(p)
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/bin"} {
		if p, err := exec.LookPath(filepath.Join(dir, program)); err == nil {
			return p, nil
		}
	}
	pkg := debianPackages[program]
	if pkg == "" {
		pkg = "infiniband-diags"
	}
	return "", &MissingError{Part: program, Package: pkg}
}

// Preload returns the path of the library that connects libibumad programs to the simulator. The error is a *MissingError.
func Preload() (string, error) {
	for _, p := range preloadPaths {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", &MissingError{Part: "libumad2sim.so", Package: "libumad2sim0"}
}

// Missing reports the parts of a usual lab that are not installed: ibsim, the preload library and the named programs. Nil
// means that all are installed.
func Missing(programs ...string) error {
	_, preloadErr := Preload()
	errs := []error{preloadErr}
	for _, p := range append([]string{"ibsim"}, programs...) {
		_, err := Find(p)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
