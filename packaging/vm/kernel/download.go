//go:build vm

package kernel

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// rootDir is the directory into which download unpacks, below its own.
const rootDir = "root"

// Package returns the directory of an unpacked Debian package of the version that apt prefers. It downloads the
// package into cache where it is not there yet, and installs nothing.
func Package(cache, name string) (string, error) {
	out, err := output("apt-cache", "policy", name)
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(out, "Candidate: ")
	version, _, _ := strings.Cut(rest, "\n")
	if !found || version == "(none)" {
		return "", fmt.Errorf("apt knows no package %s: run \"apt-get update\"", name)
	}
	dir := filepath.Join(cache, name+"-"+version)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	work, err := os.MkdirTemp(cache, name+"-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := download(work, name, version); err != nil {
		return "", err
	}
	return dir, os.Rename(filepath.Join(work, rootDir), dir)
}

// download downloads a package and unpacks it into work/root.
func download(work, name, version string) error {
	which := name + "=" + version
	cmd := exec.Command("apt-get", "-o", "APT::Sandbox::User=root", "-qq", "download", which)
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get download %s: %w: %s", which, err, out)
	}
	debs, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("apt-get download %s: %d packages (%v), want 1", which, len(debs), err)
	}
	_, err = output("dpkg-deb", "-x", debs[0], filepath.Join(work, rootDir))
	return err
}
