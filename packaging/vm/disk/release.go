//go:build vm

package disk

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Unpacked returns a directory with a package of another release of Debian and its dependencies, unpacked and not
// installed. It is made once and kept in cache.
func Unpacked(cache, release, pkg string) (string, error) {
	dir := filepath.Join(cache, "unpacked-"+release+"-"+pkg)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	work := dir + ".part"
	if err := os.RemoveAll(work); err != nil {
		return "", err
	}
	// A mirror may be some days behind what the index promises; its signature is checked all the same.
	err := run("", "mmdebstrap", "--quiet", "--variant=extract", "--include="+pkg, `--aptopt=APT::Install-Recommends "false"`,
		`--aptopt=Acquire::Check-Valid-Until "false"`, "--dpkgopt=path-exclude=/usr/share/doc/*", release, work)
	if err != nil {
		return "", fmt.Errorf("package %s of Debian %s: %w", pkg, release, err)
	}
	return dir, os.Rename(work, dir)
}

// Chroot adds programs of an unpacked release below a directory of the machine, with the libraries that they are linked with
// and further files, as a root directory of their own. The paths are those in the release.
func (s *Seed) Chroot(below, unpacked string, programs, files []string) error {
	const loader, libraries = "/usr/lib64/ld-linux-x86-64.so.2", "/usr/lib/x86_64-linux-gnu"
	for _, program := range programs {
		list := exec.Command(unpacked+loader, "--library-path", unpacked+libraries, "--list", unpacked+program)
		out, err := list.Output()
		if err != nil {
			return fmt.Errorf("libraries of %s: %w", program, err)
		}
		if err := s.File(below+program, unpacked+program); err != nil {
			return err
		}
		for word := range strings.FieldsSeq(string(out)) {
			if name, ok := strings.CutPrefix(word, unpacked); ok && name != loader {
				if err := s.File(below+name, word); err != nil {
					return err
				}
			}
		}
	}
	if err := s.File(below+loader, unpacked+loader); err != nil {
		return err
	}
	for _, dir := range []string{"bin", "lib", "lib64"} {
		s.Link(below+"/"+dir, "usr/"+dir)
	}
	for _, name := range files {
		err := filepath.WalkDir(unpacked+name, func(at string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			return s.File(below+strings.TrimPrefix(at, unpacked), at)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
