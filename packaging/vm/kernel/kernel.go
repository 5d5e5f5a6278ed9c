//go:build vm

// Package kernel has the Linux kernel that the virtual machines boot: Debian's
// cloud kernel, of the version whose headers are installed here, downloaded with apt
// and unpacked into a cache. Nothing of it is installed on this machine.
package kernel

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// headersPackage is the package whose dependency names the kernel's release.
const headersPackage = "linux-headers-cloud-amd64"

// Kernel is an unpacked kernel package.
type Kernel struct {
	Release string // such as 6.1.0-56-cloud-amd64, as uname -r prints it
	Dir     string // the unpacked package: boot/ and lib/modules/

	own bool // not Debian's, but of Override
}

// Image returns the path of the kernel's image.
func (k Kernel) Image() string { return filepath.Join(k.Dir, "boot", "vmlinuz-"+k.Release) }

// Config returns the path of the kernel's build configuration.
func (k Kernel) Config() string { return filepath.Join(k.Dir, "boot", "config-"+k.Release) }

// Modules returns the directory of the kernel's modules.
func (k Kernel) Modules() string { return filepath.Join(k.Dir, "lib", "modules", k.Release) }

// Headers returns the directory that modules are built against.
func (k Kernel) Headers() string {
	if k.own {
		return filepath.Join(k.Modules(), "build")
	}
	return "/usr/src/linux-headers-" + k.Release
}

// SignFile returns the program of Debian's kbuild package that signs modules.
func (k Kernel) SignFile() string {
	major, rest, _ := strings.Cut(k.Release, ".")
	minor, _, _ := strings.Cut(rest, ".")
	return fmt.Sprintf("/usr/lib/linux-kbuild-%s.%s/scripts/sign-file", major, minor)
}

// Override is the environment variable that names the directory of a kernel to boot instead of Debian's, such as one with
// KASAN: boot/vmlinuz-RELEASE, and lib/modules/RELEASE with a link "build" to the tree that modules are built against.
const Override = "PORTCULLIS_VM_KERNEL"

// Debian returns the kernel of the installed headers, and downloads its image into
// cache where it is not there yet.
func Debian(cache string) (Kernel, error) {
	if dir := os.Getenv(Override); dir != "" {
		return own(dir)
	}
	release, version, err := installed()
	if err != nil {
		return Kernel{}, err
	}
	k := Kernel{Release: release, Dir: filepath.Join(cache, "kernel-"+release+"-"+version)}
	if _, err := os.Stat(filepath.Join(k.Modules(), "modules.dep")); err == nil {
		return k, nil
	}
	if err := k.unpack(cache, version); err != nil {
		return Kernel{}, fmt.Errorf("kernel %s: %w", release, err)
	}
	return k, nil
}

// own returns the only kernel of a directory.
func own(dir string) (Kernel, error) {
	dirs, err := filepath.Glob(filepath.Join(dir, "lib/modules/*"))
	if err != nil || len(dirs) != 1 {
		return Kernel{}, fmt.Errorf("%s=%s: %d releases in lib/modules (%v), want 1", Override, dir, len(dirs), err)
	}
	return Kernel{Release: filepath.Base(dirs[0]), Dir: dir, own: true}, nil
}

// installed returns release and package version of the headers that are installed.
func installed() (release, version string, err error) {
	out, err := output("dpkg-query", "-W", "-f", "${Depends}", headersPackage)
	if err != nil {
		return "", "", fmt.Errorf("%s is not installed: run \"packaging/setup.sh vm\"", headersPackage)
	}
	name, _, _ := strings.Cut(strings.TrimSpace(out), " ")
	release, found := strings.CutPrefix(name, "linux-headers-")
	if !found {
		return "", "", fmt.Errorf("%s depends on %q, want linux-headers-RELEASE", headersPackage, out)
	}
	version, err = output("dpkg-query", "-W", "-f", "${Version}", name)
	return release, version, err
}

func (k Kernel) unpack(cache, version string) error {
	work, err := os.MkdirTemp(cache, "kernel-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := download(work, "linux-image-"+k.Release, version); err != nil {
		return fmt.Errorf("%w: if the index has a newer one, run \"apt-get install %s\"", err, headersPackage)
	}
	root := filepath.Join(work, rootDir)
	if _, err := output("/sbin/depmod", "-b", root, k.Release); err != nil {
		return err
	}
	return os.Rename(root, k.Dir)
}

// Dependencies returns the files of the named modules and of all they need, in the
// order in which they are loaded, relative to Modules.
func (k Kernel) Dependencies(names ...string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(k.Modules(), "modules.dep"))
	if err != nil {
		return nil, err
	}
	builtin, err := os.ReadFile(filepath.Join(k.Modules(), "modules.builtin"))
	if err != nil {
		return nil, err
	}
	needs, files := map[string][]string{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		file, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		needs[file], files[moduleName(file)] = strings.Fields(rest), file
	}
	for line := range strings.Lines(string(builtin)) {
		if name := moduleName(strings.TrimSpace(line)); files[name] == "" {
			files[name] = "-"
		}
	}
	var order []string
	for _, name := range names {
		file := files[moduleName(name)]
		switch file {
		case "-":
			continue
		case "":
			return nil, fmt.Errorf("kernel %s has no module %s", k.Release, name)
		}
		// modules.dep lists what is needed in the reverse of the order of loading.
		for _, f := range slices.Backward(append([]string{file}, needs[file]...)) {
			if !slices.Contains(order, f) {
				order = append(order, f)
			}
		}
	}
	return order, nil
}

func moduleName(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	return strings.ReplaceAll(name, "-", "_")
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return string(out), err
}
